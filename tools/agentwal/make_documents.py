#!/usr/bin/env python3
"""Writes what is made from the table of the verbs: the man page and the
completions of zsh and fish.

    agentwal help --json | make_documents.py SOURCE

writes below SOURCE, the root of the source tree. A test compares the files. The man page
also has the sections of details.roff.
"""
import json
import os
import re
import sys

TITLE = {
    "text": "The store in which AI agents keep their sessions.",
    "names": [
        ("SESSION", "An id, a unique beginning or ending of one of at least 4 characters, "
         "@latest (the newest session of the current directory), or the path of a file that was "
         "imported. delete and redact take no beginning, and an ending of at least 7 characters."),
        ("ENTRY, HEAD, CHECKPOINT", "An id or name, or a unique beginning or ending of at least "
         "4 characters. The names of what is created or deleted are complete."),
    ],
}


def option_names(option):
    """("-0, --null") -> [("0", ""), ("null", "")]; ("--at ENTRY") -> [("at", "ENTRY")]."""
    value = re.search(r" ([^-\s].*)$", option)
    return [(name.lstrip("-"), value.group(1) if value else "")
            for name in re.findall(r"--?[a-z0-9][a-z-]*", option.split(" ")[0] if value
                                   else option)]


def one_line(text):
    return " ".join(text.split())


# --- man ---------------------------------------------------------------------

def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("~", "\\(ti")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def man_options(options):
    for option in options:
        yield ".TP\n.B %s\n%s" % (roff(option["option"]), roff(one_line(option["text"])))


def man_verb(row):
    yield ".SS %s" % roff(row["verb"])
    for usage in row["usage"].split("\n"):
        verb = "" if usage.startswith(row["verb"] + " ") else row["verb"] + " "
        yield ".B agentwal\n%s\n.br" % roff((verb + usage).strip())
    yield ".PP\n%s." % roff(row["summary"])
    if row["text"]:
        yield roff(one_line(row["text"]))
    yield from man_options(row["options"])
    yield ".PP\nEXAMPLES"
    for example in row["examples"]:
        yield ".PP\n%s:\n.PP\n.EX\n.RS\n%s\n.RE\n.EE" % (
            roff(example["text"]), roff(example["command"]))


def man(rows, common):
    yield '.\\" Made by tools/agentwal/make_documents.py from the help of the verbs.'
    yield '.TH AGENTWAL 1 "" agentwal "agentwal manual"'
    yield ".SH NAME\nagentwal \\- keep the sessions of AI agents"
    yield ".SH SYNOPSIS\n.B agentwal\n.RB [ \\-\\-store\n.IR DIR ]\n.I VERB"
    yield ".RI [ OPTION ]...\n.RI [ ARGUMENT ]..."
    yield ".SH DESCRIPTION\n%s" % TITLE["text"]
    yield ("Results are printed for people; with\n.B \\-\\-json\nas one JSON object per line, and "
           "an error is one object\n.B {\"error\":{\"status\",\"what\",\"why\",\"exitCode\"}}\n"
           "on standard error. Control characters in texts are escaped.")
    for name, text in TITLE["names"]:
        yield ".TP\n.I %s\n%s" % (roff(name), roff(text))
    yield (".PP\nIds that were made by the store are printed as their ending, of at least 7 "
           "characters, that is\nunique at that moment. In stores of more than 5,000 sessions "
           "they are printed complete.")
    yield ".SH OPTIONS OF EVERY VERB"
    yield from man_options(common)
    group = None
    for row in rows:
        if row["group"] != group:
            group = row["group"]
            yield ".SH %s" % group.upper()
        yield from man_verb(row)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "details.roff"),
              encoding="utf-8") as file:
        yield file.read().rstrip("\n")
    yield (".SH EXIT STATUS\n0 done; 1 the answer is no (damage found, conflict, not found); 2 "
           "the command line is\nwrong; 3 could not do it.")
    yield ".SH ENVIRONMENT"
    for name, text in (
            ("AGENTWAL_STORE", "The store, without \\-\\-store."),
            ("AGENTWAL_KEY_FILE, AGENTWAL_KEY_COMMAND",
             "The key of an encrypted store, without an option that names one."),
            ("XDG_DATA_HOME, HOME", "The directory of the store without both: "
             "$XDG_DATA_HOME/agentwal, else ~/.local/share/agentwal."),
            ("PAGER", "The pager; empty: none. Without it: less \\-FRX."),
            ("NO_COLOR, TERM", "No colours with NO_COLOR, and on a dumb terminal."),
            ("COLUMNS", "The width of the output.")):
        yield ".TP\n.B %s\n%s" % (name, text.replace("~", "\\(ti"))
    yield (".SH SEE ALSO\n.BR walcat (1),\n.BR walcheck (1):\n"
           "names of the same program for a store that is the first operand.\n"
           "Documents such as docs/keeping.md are in /usr/share/doc/agentwal, or in\n"
           "share/doc/agentwal of another folder that agentwal was installed to.")


# --- zsh ---------------------------------------------------------------------

def zsh_quote(text):
    return one_line(text).replace("'", "'\\''").replace("[", "(").replace("]", ")").replace(
        ":", "\\:")


def zsh_value(name, value):
    if not value:
        return ""
    action = {"session": "_agentwal_sessions", "dialect": "_agentwal_dialects",
              "store": "_directories", "cwd": "_directories", "root": "_directories",
              "files-from": "_files"}.get(name, "")
    return ":%s:%s" % (zsh_quote(value).split(" ")[0].replace("|", " or "), action)


def zsh_options(options):
    seen = set()
    for option in options:
        for name, value in option_names(option["option"]):
            if name in seen:
                continue
            seen.add(name)
            dashes = "-" if len(name) == 1 else "--"
            repeat = "*" if name == "session" else ""
            yield "'%s%s%s[%s]%s'" % (repeat, dashes, name, zsh_quote(option["text"]),
                                      zsh_value(name, value))


def zsh_operands(row):
    words = re.sub(r"\[?--[^\s]+( [A-Z]+)?\]?", "", row["usage"]).split()
    if row["verb"] == "doc":
        return ["'1:what:(put get delete list scan)'", "'2:session:_agentwal_sessions'"]
    if row["verb"] == "help":
        return ["'*:verb:_agentwal_verbs'"]
    if row["verb"] == "path":
        return ["'1:directory:_directories'", "'2:session:_agentwal_sessions'"]
    if words and words[0].strip("[]") == "SESSION":
        return ["'1:session:_agentwal_sessions'", "'*:file:_files'"]
    return ["'*:file:_files'"] if words else []


def zsh(rows, common):
    yield "#compdef agentwal"
    yield "# Made by tools/agentwal/make_documents.py from the help of the verbs."
    yield "\n_agentwal_verbs() {\n    local -a verbs=("
    for row in rows:
        yield "        '%s:%s'" % (row["verb"], zsh_quote(row["summary"]))
    yield "    )\n    _describe verb verbs\n}"
    yield r"""
# The program with the store of the command line.
_agentwal_call() {
    local -a store
    local i
    for ((i = 1; i < ${#_agentwal_line}; i++)); do
        case $_agentwal_line[i] in
        --store) store=(--store=${(Q)~_agentwal_line[i+1]}) ;;
        --store=*) store=(${(Q)_agentwal_line[i]}) ;;
        esac
    done
    command agentwal $store "$@" 2>/dev/null
}

_agentwal_sessions() {
    local -a ids
    ids=(@latest ${(f)"$(_agentwal_call list --json --limit 1000 |
        sed -n 's/^{"sessionId":"\([][A-Za-z0-9._:@%+,/=-]*\)".*/\1/p')"})
    compadd -a ids
}

_agentwal_dialects() {
    local -a names
    names=(${(f)"$(_agentwal_call dialects --json | sed -n 's/^{"name":"\([a-z0-9]*\)".*/\1/p')"})
    compadd -a names
}

_agentwal() {
    local -a _agentwal_line common
    local context state state_descr line
    typeset -A opt_args
    _agentwal_line=($words)
    common=("""
    for spec in zsh_options(common):
        yield "        " + spec
    yield "    )\n    _arguments -C $common '1: :_agentwal_verbs' '*:: :->rest' && return"
    yield "    [[ $state = rest ]] || return\n    case $words[1] in"
    for row in rows:
        specs = list(zsh_options(row["options"])) + zsh_operands(row)
        yield "    %s)\n        _arguments $common%s\n        ;;" % (
            row["verb"], "".join(" \\\n            " + spec for spec in specs))
    yield "    esac\n}\n\n_agentwal \"$@\""


# --- fish --------------------------------------------------------------------

def fish_quote(text):
    return "'%s'" % one_line(text).replace("\\", "\\\\").replace("'", "\\'")


def fish_options(options, condition):
    for option in options:
        for name, value in option_names(option["option"]):
            kind = "-s" if len(name) == 1 else "-l"
            values = {"session": " -x -a '(__agentwal_sessions)'",
                      "dialect": " -x -a '(__agentwal_dialects)'",
                      "store": " -x -a '(__fish_complete_directories)'",
                      "cwd": " -x -a '(__fish_complete_directories)'",
                      "root": " -x -a '(__fish_complete_directories)'",
                      "files-from": " -r -F"}.get(name, " -x")
            yield "complete -c agentwal%s %s %s%s -d %s" % (
                condition, kind, name, values if value else "", fish_quote(option["text"]))


def fish(rows, common):
    yield "# Made by tools/agentwal/make_documents.py from the help of the verbs."
    yield r"""
# The program with the store of the command line.
function __agentwal_call
    set -l store
    set -l words (commandline -opc)
    for i in (seq (count $words))
        switch $words[$i]
            case '--store=*'
                set store $words[$i]
            case --store
                set -l next (math $i + 1)
                set store --store=$words[$next]
        end
    end
    command agentwal $store $argv 2>/dev/null
end

function __agentwal_sessions
    echo @latest
    __agentwal_call list --json --limit 1000 |
        string replace -rf '^\{"sessionId":"([^"\\\\]*)".*' '$1'
end

function __agentwal_dialects
    __agentwal_call dialects --json | string replace -rf '^\{"name":"([a-z0-9]*)".*' '$1'
end

complete -c agentwal -f"""
    for row in rows:
        yield "complete -c agentwal -n __fish_use_subcommand -a %s -d %s" % (
            row["verb"], fish_quote(row["summary"]))
    yield from fish_options(common, "")
    for row in rows:
        condition = " -n '__fish_seen_subcommand_from %s'" % row["verb"]
        yield from fish_options(row["options"], condition)
        operands = " ".join(zsh_operands(row))
        if "_agentwal_sessions" in operands:
            yield "complete -c agentwal%s -a '(__agentwal_sessions)'" % condition
        if "_files" in operands or "_directories" in operands:
            yield "complete -c agentwal%s -F" % condition
        if row["verb"] == "doc":
            yield "complete -c agentwal%s -a 'put get delete list scan'" % condition
        if row["verb"] == "help":
            yield "complete -c agentwal%s -a '%s'" % (
                condition, " ".join(other["verb"] for other in rows))


def main():
    source = sys.argv[1]
    rows = [json.loads(line) for line in sys.stdin]
    common = rows.pop()["options"]
    for path, make in (("tools/man/agentwal.1", man), ("tools/completion/_agentwal", zsh),
                       ("tools/completion/agentwal.fish", fish)):
        os.makedirs(os.path.join(source, os.path.dirname(path)), exist_ok=True)
        with open(os.path.join(source, path), "w", encoding="utf-8") as file:
            file.write("\n".join(make(rows, common)) + "\n")


main()
