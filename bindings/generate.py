#!/usr/bin/env python3
"""Makes C of a binding from the public headers and lists of what it has.

  generate.py node|python|records|declarations SPEC OUTPUT

`records` makes a module of Python, and `declarations` one of TypeScript, of what
records.txt says. It reads structs.txt, which is for all bindings, and SPEC, the
interface.txt of one. Each
line is one of these; a line that begins with spaces continues the one before.
Names of fields are as in C; those of JavaScript are made of them.

  in STRUCT MEMBER...
      The table STRUCT_in: members that a caller sets, in the order of the
      arguments; NAME=MEMBER for another name in messages.
  out [TABLE] STRUCT [only] FIELD...
      The table STRUCT_out, or TABLE_out: members that a caller gets. These are
      all but flags of which the fields name bits, and what has no value in the
      language, with the exceptions that the fields name; with `only`, those that
      the fields name. They are in the order of the struct, with bits of flags
      last; fields that are named before `...` are the first, and those after it
      the last. STRUCT may be the type of a callback: its parameters are members.
        MEMBER?           null (None) when it is empty; MEMBER?undefined
        -MEMBER           left out
        NAME=MEMBER       under another name
        NAME=MEMBER&MASK  whether bits of flags are set
        MEMBER:A,B,...    one of these names
        MEMBER:code       a status: the name of its code (Python: its number)
        MEMBER:bool
        MEMBER:NUMBER     at most NUMBER items of an array of structs
        MEMBER:FUNCTION   an array of numbers, by the names that FUNCTION has for
                          their indexes
  lists STRUCT NAME=MEMBER[:NUMBER]...
      Members of options that are callbacks: what they are called with becomes a
      list of the result, which has at most NUMBER items.
  cursor CURSOR FUNCTION [NAME]
      A cursor that a function returns: the struct that FUNCTION fills is the
      result if there is no other, and with NAME the rows of the cursor are a list
      of it.
  list NAME CURSOR        a function for all that a cursor returns
  each NAME FUNCTION      a function for what FUNCTION fills for all indexes;
                          each?: WAL_ENOTFOUND fills it, too
  names NAME FUNCTION     a function for the names of all indexes

For Node.js:

  handle STRUCT NAME CLOSE [shared] [WORDS]
      A kind of handles: NAME_type, named WORDS in messages.
  now NAME FUNCTION [plain] [flushed]
      A function that calls the library at once. plain: a session is its handle.
      flushed: it submits first what waits for room in the queue of the store.
  now? NAME FUNCTION      likewise; WAL_ENOTFOUND is null
  job NAME FUNCTION [flushed]
      A function that calls it in another thread. flushed: one more argument, last:
      true writes first what is queued.

For Python:

  call NAME FUNCTION [flat] [locked]
      A function that calls the library without the interpreter's lock. flat:
      the fields of options are arguments, in place of one row of them. locked: it
      reads text that the last handle has for all threads.
  call? NAME FUNCTION     likewise; WAL_ENOTFOUND is None
  constants NAME...       constants of the module, without WAL_

The word `either` after a function says that it is one of the session if there is
one, else of the store.

The arguments of a function are those of the library's: handles and values, the
fields of options, a watch (Python: a function) where the options have progress.
What the library returns by pointers is the result: one value, or an object of
them (Python: a tuple). A session is a pair of its handle and its id in Node.js.
"""
import glob
import os
import re
import sys
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PATHS = ("path", "paths", "root", "directory", "exclude")
NUMBERS = {"uint32_t": "U32", "uint64_t": "U64", "int32_t": "I32", "int64_t": "I64",
           "double": "DOUBLE"}


def indented(statements):
    return "".join("    %s\n" % statement for statement in statements)


def guarded(name, text):
    """The text; of what is named for the search, for a build that has that."""
    return "#ifdef AGENTWAL_WITH_SEARCH\n%s#endif\n" % text if "wal_search" in name else text


def struct_of(type_):
    return re.sub(r"const |struct | ?\*", "", type_)


def split(members):
    """(type, name, size or None) of each."""
    return [re.fullmatch(r"(.*?) ?(\w+)(?:\[(\w+)\])?", " ".join(member.split())).groups()
            for member in members if member.strip() not in ("", "void")]


class Headers:
    """The structs and functions of the public headers."""

    def __init__(self):
        self.names, self.structs, self.functions, self.codes = [], {}, {}, []
        self.callbacks = {}  # type: (type of the result, parameters after ctx)
        for folder in ("engine", "convert", "search"):
            top = os.path.join(ROOT, folder, "include")
            for path in sorted(glob.glob(os.path.join(top, "**/*.h"), recursive=True)):
                self.names.append(os.path.relpath(path, top))
                with open(path, encoding="utf-8") as file:
                    self.read(file.read())

    def read(self, text):
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        text = re.sub(r"^#.*(\\\n.*)*", "", text, flags=re.M)
        for name, body in re.findall(r"^struct (wal_\w+) \{(.*?)^\};", text, re.S | re.M):
            self.structs[name] = split(body.split(";"))
        self.codes += re.findall(r"^    (WAL_E[A-Z]+) = -\d+\b", text, re.M)
        for result, name, parameters in re.findall(
                r"^typedef (\w+) (wal_\w+_fn)\(void \*ctx, ([^;]*?)\);", text, re.M):
            self.callbacks[name] = (result, split(parameters.split(",")))
            self.structs[name] = [("uint32_t", "struct_size", None), *self.callbacks[name][1]]
        for result, name, parameters in re.findall(
                r"WAL_API (?:WAL_MUST_USE )?([\w\s*]+?)\s*\b(wal_\w+)\(([^;]*?)\);", text):
            self.functions[name] = (result, split(parameters.split(",")))


class Plan:
    """How a function is called. In C: variables, what reads them, arguments ("@NAME" is a handle
    or the error), what frees them, and (name, value) of the results; the name of what the lists
    are added to is None."""

    def __init__(self):
        self.handles, self.variables, self.reads, self.arguments = [], [], [], []
        self.frees, self.results, self.cursor, self.sessions = [], [], None, []
        self.options, self.struct, self.lists = None, None, []  # of the options with callbacks
        self.change = 0  # the argument that is a function of a session, or 0
        self.count = 0  # of arguments

    def called(self, function, values):
        return "%s(%s)" % (function, ", ".join(values.get(a, a) for a in self.arguments))


class Binding:
    """What is common: the lists, the tables, and how a function is called."""

    # A variable for a parameter, and the argument.
    VARIABLES = {
        "value": ("{type} {name}", "{place}"), "const char *": ("const char *{name}", "{place}"),
        "digest": ("uint8_t {name}[{size}]", "{place}"),
        "texts": ("struct wal_slice *{name}", "{place}"),
        "structs": ("struct {struct} *{name}", "{place}"),
        "result": ("struct {struct} {name}", "&{place}"),
        "wal_append_result": ("struct {struct} {name}", "&{place}"),
        "new": ("struct {struct} *{name}", "&{place}"),
        "uint64_t *": ("uint64_t {name}", "&{place}"), "int32_t *": ("int32_t {name}", "&{place}"),
        "fd": ("int32_t {name}", "&{place}"), "const char **": ("const char *{name}", "&{place}"),
        "uint8_t[": ("uint8_t {name}[{size}]", "{place}"),
        "char[": ("char {name}[{size}]", "{place}"),
        "content": ("struct content {name}", "{place}.slice"),
        "session": ("struct opened_session {name}", "&{place}.session")}
    FREES = {}

    def __init__(self, spec, headers):
        self.headers = headers
        self.tables = {}  # name: (struct, fields, which are dicts)
        self.handles = {}  # struct: (name, close, is shared, words)
        self.calls = []  # (how, name, function, modifiers)
        self.lists = {}  # struct: [(name, member, limit)]
        self.cursors = {}  # struct: (function, name or None)
        self.constants = []
        text = ""
        for path in (os.path.join(ROOT, "bindings", "structs.txt"), spec):
            with open(path, encoding="utf-8") as file:
                text += re.sub(r"#.*", "", file.read())
        for line in re.sub(r"\n[ \t]+", " ", text).splitlines():
            words = line.split()
            if words:
                self.read(*words)

    def read(self, what, *words):
        if what == "handle":
            shared = words[3:4] == ("shared",)
            self.handles[words[0]] = (words[1], words[2], shared,
                                      " ".join(words[3 + shared:]) or words[1])
        elif what == "in":
            members = {m[1]: m for m in self.headers.structs[words[0]]}
            named = [word.rpartition("=") for word in words[1:]]
            self.tables[words[0] + "_in"] = (words[0], [
                self.field(words[0], *members[member], name or self.name(member))
                for name, _, member in named])
        elif what == "out":
            table = words[0]
            if words[1:2] and words[1] in self.headers.structs:
                words = words[1:]
            self.tables[table + "_out"] = (words[0], self.fields(*words))
        elif what == "lists":
            self.lists[words[0]] = [re.fullmatch(r"(\w+)=(\w+):?(\d*)", word).groups()
                                    for word in words[1:]]
        elif what == "cursor":
            self.cursors[words[0]] = (words[1], words[2] if words[2:] else None)
        elif what == "constants":
            self.constants += words
        else:
            self.calls.append((what, words[0], words[1], words[2:]))

    def kind_of(self, type_, name, size):
        """The kind of a member without what a list says, or None."""
        if "reserved" in name or name == "struct_size":
            return None
        if type_ == "struct wal_slice":
            return ("PATH" if name in PATHS else "CONTENT" if name in self.CONTENTS else
                    "SECRET" if name == "bytes" else "TEXT")
        if type_ == "uint8_t" and size:
            return "UUID" if size == "16" else "DIGEST"
        if type_ == "char" and size:
            return "CHARS"
        return None if size else self.KINDS.get("ns" if name.endswith("_ns") else type_)

    def field(self, struct, type_, member, size, name):
        """A field of a table, whose kind is None if the member has no value."""
        field = {"name": name, "kind": self.kind_of(type_, member, size), "member": member}
        number = re.sub(r"s$", "", member) + "_count"
        if ("uint64_t", number, None) in self.headers.structs[struct]:
            field["count"] = "offsetof(struct %s, %s)" % (struct, number)
            field["kind"] = "TEXTS" if "wal_slice" in type_ else "STRUCTS"
        elif type_.startswith("const struct") and field["kind"] is None:
            field["kind"] = "STRUCT"
        if field["kind"] in ("STRUCT", "STRUCTS"):
            field["items"] = "&%s_%s" % (struct_of(type_), "in" if "count" not in field else "out")
        return field

    def fields(self, struct, *words):
        members = {m[1]: m for m in self.headers.structs[struct]}
        left_out = {word[1:] for word in words if word.startswith("-")}
        left_out |= {re.sub(r"s$", "", member) + "_count" for member in members}
        first, last = {}, {}  # by what they read
        for i, word in enumerate(words):
            match = re.fullmatch(r"(?:(\w+)=)?(\w+)(?:&(\w+)|\?(\w*)|:([\w,]+))?", word)
            if word == "only" or match is None:
                continue
            name, member, mask, empty, value = match.groups()
            field = self.field(struct, *members[member], self.name(name or member))
            kind = field["kind"]
            if value in self.headers.functions:
                field.update(kind="COUNTS", name_of=value)
            elif kind is None:
                continue
            elif mask:
                field.update(kind="FLAG", mask=mask)
                left_out.add(member)
            elif empty is not None:
                field["kind"] = {"TEXT": "OR_NONE" if empty else "OR_NULL", "CONTENT": "OR_NULL",
                                 "CHARS": "ID", "DIGEST": "NO_DIGEST",
                                 "U64": "U64_OR_NULL"}[kind]
            elif value in ("code", "bool"):
                field["kind"] = value.upper()
            elif value and kind == "STRUCTS":
                field["mask"] = value
            elif value:
                listed = value.split(",")
                field.update(kind="NAME", mask=len(listed), names="(const char *const[]){%s}" %
                             ", ".join('"%s"' % item for item in listed))
            (first if "..." in words[i:] else last)[member, mask] = field
        rest = []
        for member, value in members.items():
            field = self.field(struct, *value, self.name(member))
            if (member, None) in first or member in left_out:
                continue
            if "..." not in words and (member, None) in last:
                rest.append(last.pop((member, None)))
            elif (member, None) not in last and "only" not in words and field["kind"]:
                rest.append(field)
        return [*first.values(), *rest, *last.values()]

    def table_text(self, name):
        struct, fields = self.tables[name]
        # What a callback is called with, if that is one value, is this value.
        is_value = struct in self.headers.callbacks and len(fields) == 1
        text = ""
        for field in fields:
            place = (struct, field["member"])
            values = {
                "name": "NULL" if is_value else '"%s"' % field["name"],
                "kind": "FIELD_" + field["kind"],
                "offset": "offsetof(struct %s, %s)" % place,
                "size": "sizeof(((struct %s *)0)->%s)" % place,
                **{key: field[key] for key in ("mask", "names", "items", "count", "name_of")
                   if key in field}}
            text += "    {%s},\n" % ", ".join(".%s = %s" % value for value in values.items())
        return ("static const struct field %s_fields[] = {\n%s};\n"
                "const struct table %s = {%s_fields, %d, sizeof(struct %s)};\n" % (
                    name, text, name, name, len(fields), struct))

    def all_text(self, includes, functions):
        """The file: includes, tables, functions, and what the binding adds."""
        return "\n".join([
            *("#include %s" % name for name in includes),
            *("#include <%s>" % name for name in self.headers.names),
            *("struct %s {\n%s};" % (struct, indented("%s %s;" % m[:2] for m in
                                                      self.headers.structs[struct]))
              for struct, _ in self.tables.values() if struct in self.headers.callbacks),
            *("extern const struct table %s;" % name for name in self.tables), "",
            *map(self.table_text, self.tables), *functions,
            *(guarded(function, getattr(self, "call_" + how.rstrip("?"))(
                name, function, how.endswith("?"), rest))
              for how, name, function, rest in self.calls)])

    def methods(self, item):
        """The items of a list of all functions."""
        return "".join(guarded(function, "    %s,\n" % (item % (name, name)))
                       for _, name, function, _ in self.calls)

    def plan(self, function, words=(), place=""):
        """Plans a call; `place` is where the variables are."""
        plan = Plan()
        parameters = self.headers.functions[function][1]
        plan.handles = [(name, struct_of(type_)) for type_, name, _ in parameters
                        if re.search(r"[^*]\*$", type_) and struct_of(type_) in self.handles]
        plan.count = self.handle_count(plan, words)
        skipped = None
        for i, (type_, name, size) in enumerate(parameters):
            struct = struct_of(type_)
            filled = {"name": name, "type": type_, "size": size, "struct": struct,
                      "place": place + name, "value": self.VALUE % plan.count}
            following = parameters[i + 1][1] if i + 1 < len(parameters) else ""
            if name == skipped:
                plan.arguments.append("&callback" if plan.change else place + skipped)
            elif struct == "wal_error" or (name, struct) in plan.handles:
                plan.arguments.append("@" + ("error" if struct == "wal_error" else name))
            elif type_.endswith("**") and struct + "_next" in self.headers.functions and \
                    struct not in self.handles:
                plan.cursor = (name, struct)
                plan.variables.append("struct %s *%s" % (struct, name))
                plan.arguments.append("&" + place + name)
            elif re.search(r"(^|_)count$", following) and type_.startswith("const struct"):
                skipped = following
                plan.variables.append("uint32_t %s" % skipped)
                self.add(plan, "texts" if struct == "wal_slice" else "structs",
                         {**filled, "count": place + skipped})
            elif type_.startswith("const struct"):
                self.add_options(plan, words, filled)
                types = {m[1]: struct_of(m[0]) for m in self.headers.structs[struct]}
                if "progress" in types:
                    plan.options, plan.struct = place + name, struct
                    plan.lists = [(listed, member, self.headers.callbacks[types[member]],
                                   self.listed(types[member]), limit or "UINT32_MAX")
                                  for listed, member, limit in self.lists.get(struct, [])]
            elif type_ == "struct wal_slice" or (type_ in NUMBERS and not size):
                kind = self.kind_of(type_, name, size)
                self.add(plan, "content" if kind == "CONTENT" and "content" in self.READS else
                         "value", {**filled, "read": self.READ[kind]})
            elif size:
                self.add(plan, "digest" if type_.startswith("const") else type_ + "[", filled)
            elif type_.endswith("**") and struct in self.handles:
                is_session = (struct == "wal_session" and "session" in self.RESULTS
                              and "plain" not in words)
                plan.sessions += [name] if is_session else []
                self.add(plan, "session" if is_session else "new", filled)
            elif struct == "wal_update_fn":
                skipped, plan.change = following, plan.count
                plan.arguments.append("callback.change == NULL ? NULL : callback_change")
                plan.count += 1
            else:
                self.add(plan, struct if struct in self.RESULTS else
                         "result" if struct in self.headers.structs else
                         name if name in self.RESULTS else type_, filled)
        if plan.lists:
            plan.results = [(None, value) for _, value in plan.results]
        return plan

    def add(self, plan, what, filled):
        """Adds a parameter."""
        variable, argument = self.VARIABLES[what]
        read, result = self.READS.get(what, ""), self.RESULTS.get(what, "")
        plan.variables.append(variable.format(**filled))
        plan.arguments.append(argument.format(**filled))
        plan.count += "{value}" in read
        plan.reads += [read.format(**filled)] if read else []
        plan.results += [(filled["name"], result.format(**filled))] if result else []
        plan.frees += [self.FREES[what].format(**filled)] if what in self.FREES else []

    def zeroed(self, variable):
        """The definition of a variable."""
        match = re.match(r"struct (\w+) \w+$", variable)
        if match and ("uint32_t", "struct_size", None) in self.headers.structs.get(match[1], ()):
            return "%s = WAL_INIT(%s)" % (variable, match[1])
        return variable + (" = {0}" if match or "[" in variable else " = 0")

    def item_of(self, cursor):
        """The struct that a cursor fills."""
        return struct_of(self.headers.functions[cursor + "_next"][1][1][0])

    def info_of(self, cursor):
        """The function that says what the whole of a cursor is, the struct that it fills, and the
        name of the list of the rows."""
        function, name = self.cursors[cursor]
        return function, struct_of(self.headers.functions[function][1][1][0]), name

    def lists_of_results(self):
        """The lists of results: {struct: [(name, table of the items)]}."""
        lists = {}
        for how, _, function, words in self.calls:
            if how.rstrip("?") in ("call", "job", "now"):
                plan = self.plan(function, words)
                structs = [struct_of(type_) for type_, _, _ in self.headers.functions[function][1]]
                results = [s for s in structs if s.endswith(("_result", "_info")) and
                           s + "_out" in self.tables]
                if plan.lists:
                    lists[results[-1]] = [(listed[0], listed[3]) for listed in plan.lists]
                elif plan.cursor and self.info_of(plan.cursor[1])[2]:
                    _, info, rows = self.info_of(plan.cursor[1])
                    lists[(results or [info])[-1]] = [
                        (rows, self.item_of(plan.cursor[1]) + "_out")]
        return lists

    def described(self):
        """What records.txt has of each struct: the struct, its names, a sentence, (type, text) by
        the names of fields, and then fields of its table and (name, table) of lists of structs."""
        with open(os.path.join(ROOT, "bindings", "records.txt"), encoding="utf-8") as file:
            text = re.sub(r"\n    +", " ", re.sub(r"^#.*\n", "", file.read(), flags=re.M))
        lists = self.lists_of_results()
        for head, sentence, rest in re.findall(r"^record (.*)\n  (.*)\n((?:  .*\n)*)", text, re.M):
            struct, *names = head.split()
            said = {}
            for line in rest.splitlines():
                field, type_, doc = re.fullmatch(r"  (-?\w+)(?: = ([^:]*))?(?:: (.*))?",
                                                 line).groups()
                said[self.name(field.lstrip("-"))] = ("-" if field[0] == "-" else type_, doc or "")
            table = self.tables[struct + "_out"][1]
            yield struct, names, sentence, said, [f for f in table if f["kind"] != "STRUCTS"], [
                *lists.get(struct, ()),
                *((f["name"], f["items"][1:]) for f in table if f["kind"] == "STRUCTS")]

    def listed(self, type_):
        """The table of what a callback is called with: that of a struct, or of its parameters."""
        struct = struct_of(self.headers.callbacks[type_][1][0][0])
        is_struct = struct in self.headers.structs and struct != "wal_error"
        return (struct if is_struct else type_) + "_out"

    @staticmethod
    def callback_text(name, member, callback, table, statements):
        """A callback of options whose item is listed: a function with `item`, and statements."""
        result, parameters = callback
        made = ["const void *item = %s;" % parameters[0][1]]
        if table.endswith("_fn_out"):
            struct = table[:-len("_out")]
            made = ["const struct %s made = {sizeof(made), %s};" % (
                struct, ", ".join(p[1] for p in parameters)), "const void *item = &made;"]
        return "static %s %s_%s(void *ctx, %s)\n{\n%s}\n" % (
            result, name, member, ", ".join(" ".join(p[:2]) for p in parameters),
            indented(made + statements))


# A function that fills a struct from a cursor.
NEXT = ("static enum wal_status %s_next(void *cursor, void *item, struct wal_error *error)\n"
        "{\n    return %s_next(cursor, item, error);\n}\n")


class Node(Binding):
    VALUE = "call_arg(call, %d)"
    KINDS = {**NUMBERS, "ns": "MS", "const struct wal_error *": "ERROR", "const char *": "STRING"}
    CONTENTS = ("payload", "content", "piece")
    READ = {"TEXT": "text", "PATH": "path_slice", "CONTENT": "bytes", "U32": "u32", "U64": "u64",
            "I64": "i64", "I32": "bool"}
    READS = {
        "value": "{place} = value_{read}(call, {value});",
        "const char *": "{place} = value_path(call, {value});",
        "digest": "value_digest(call, {value}, {place});",
        "texts": "{place} = value_texts(call, {value}, true, &{count});",
        "structs": "{place} = read_structs(call, {value}, &{struct}_in, &{count});",
        "result": "{place}.struct_size = sizeof({place});"}
    RESULTS = {
        "result": "make_struct(call, &{struct}_out, &{place})",
        "uint64_t *": "make_number(call, {place})", "int32_t *": "make_bool(call, {place} != 0)",
        "const char **": "make_string(call, {place})", "uint8_t[": "make_digest(call, {place})",
        "char[": "make_optional(call, (struct wal_slice){{{place}, strlen({place})}})",
        "session": "session_make(call, @store, &{place})", "new": "{struct}"}

    @staticmethod
    def name(member):
        member = re.sub(r"_(ms|ns)$", "", member)
        return re.sub(r"_(\w)", lambda m: m[1].upper(), member)

    def text(self):
        text = self.all_text(
            ['"bindings/node/native/interface.h"', "<string.h>",
             '"bindings/node/native/base/value.h"', '"bindings/node/native/store/job.h"',
             '"bindings/node/native/store/store.h"', '"bindings/node/native/store/submission.h"'],
            [guarded(close, "static void close_%s(void *object)\n{\n    %s(object);\n}\n"
                     'const struct handle_type %s_type = {"%s", close_%s, %s};\n' % (
                         name, close, name, words, name, str(shared).lower()))
             for name, close, shared, words in self.handles.values() if name])
        return text + (
            "\nconst char *status_code(int32_t status)\n{\n    switch (status) {\n%s"
            '    default:\n        return "WAL_OK";\n    }\n}\n' % indented(
                'case %s: return "%s";' % (code, code) for code in self.headers.codes)) + (
            "\nconst struct call_method interface_methods[] = {\n%s    {NULL, NULL},\n};\n" %
            self.methods('{"%s", call_%s}'))

    def __init__(self, spec, headers):
        super().__init__(spec, headers)
        self.handles["wal_store"] = ("", "", False, "")

    @staticmethod
    def handle_count(plan, words):
        """The session comes before the store if it may be either; else it has the store."""
        structs = {struct for _, struct in plan.handles}
        return len(plan.handles) if "either" in words or structs <= {"wal_store"} else 1

    def add_options(self, plan, _words, filled):
        table = filled["struct"] + "_in"
        plan.variables.append("struct %s %s" % (filled["struct"], filled["name"]))
        if table in self.tables:
            plan.reads.append("read_struct(call, %d, &%s, &%s);" % (plan.count, table,
                                                                    filled["place"]))
            plan.count += len(self.tables[table][1])
        else:
            plan.reads.append("{0}.struct_size = sizeof({0});".format(filled["place"]))
        plan.arguments.append("&" + filled["place"])

    def gets(self, plan, words):
        """Statements that get the handles, the two arguments of job_create, and where in C the
        handles are in a call at once and in a job."""
        stores = [name for name, struct in plan.handles if struct == "wal_store"]
        others = [(name, self.handles[struct][0]) for name, struct in plan.handles
                  if struct != "wal_store"]
        if "either" in words:
            [(name, kind)], [store] = others, stores
            absent = "value_is_absent(call, call_arg(call, 0))"
            return (["struct handle *%s = %s ? NULL : handle_get(call, 0, &%s_type);" % (
                name, absent, kind),
                     "struct store *%s = %s == NULL ? store_get(call, 1) : %s->store;" % (
                         store, name, name)],
                    "%s, %s" % (store, name),
                    {"@" + store: store + "->wal",
                     "@" + name: "%s == NULL ? NULL : %s->object" % (name, name)},
                    {"@" + store: "job->store->wal",
                     "@" + name: "job->handle == NULL ? NULL : job->handle->object"})
        if others:
            [(name, kind)] = others
            now = {"@" + s: name + "->store->wal" for s in stores}
            job = {"@" + s: "job->store->wal" for s in stores}
            now["@" + name], job["@" + name] = name + "->object", "job->handle->object"
            return (["struct handle *%s = handle_get(call, 0, &%s_type);" % (name, kind)],
                    "NULL, " + name, now, job)
        job = {"@" + s: "job->%s->wal" % ("store" if s == stores[-1] else "other") for s in stores}
        return (["struct store *%s = store_get(call, %d);" % (s, i) for i, s in enumerate(stores)],
                (stores[-1] if stores else "NULL") + ", NULL",
                {"@" + s: s + "->wal" for s in stores}, job)

    def returned(self, results, store):
        """Statements that return what the results are."""
        results = [(name, "handle_make(call, &%s_type, %s, %s)" % (
            self.handles[made][0], store, name) if made in self.handles else
                    made.replace("@store", store)) for name, made in results]
        if not results:
            return ["return make_undefined(call);"]
        if len(results) == 1:
            return ["return %s;" % results[0][1]]
        base = [value for name, value in results if name is None]
        return ["napi_value object = %s;" % (base[0] if base else "make_object(call)"),
                *('object_set(call, object, "%s", %s);' % result for result in results
                  if result[0] is not None),
                "return object;"]

    def call_now(self, name, function, is_optional, words):
        type_ = self.headers.functions[function][0]
        head = "static napi_value call_%s(struct call *call)\n{\n" % name
        plan = self.plan(function, words)
        gets, _, values, _ = self.gets(plan, words)
        called = plan.called(function, {**values, "@error": "call_error(call)"})
        store = plan.handles[0][0] if plan.handles else ""
        if store and plan.handles[0][1] != "wal_store":
            store += "->store"
        elif len(plan.handles) > 1 and "either" not in words:
            store = plan.handles[1][0] + "->store"
        if "flushed" in words:
            # That may run JavaScript, which may close the store.
            gets += ["if (%s == NULL) {" % store, "    return NULL;", "}",
                     "submissions_flush_backlog(%s);" % store, "%s = store_get(call, 0);" % store]
        text = head + indented([
            *gets,
            *(self.zeroed(v) + ";" for v in plan.variables),
            *plan.reads, "if (call->failed) {", "    return NULL;", "}"])
        if not type_.startswith("enum"):
            return text + "    return make_%s(call, %s);\n}\n" % {
                "uint64_t": ("number", called), "int32_t": ("bool", called + " != 0")}.get(
                    type_, ("string", called))
        for session in plan.sessions:
            called = "session_identify(&%s, %s, call_error(call))" % (session, called)
        text += indented([
            "enum wal_status status = %s;" % called,
            *(["if (status == WAL_ENOTFOUND) {", "    return make_null(call);", "}"]
              if is_optional else []),
            "if (!call_check(call, status)) {",
            *("    session_discard(&%s);" % session for session in plan.sessions),
            "    return NULL;", "}"])
        if plan.cursor:
            cursor, struct = plan.cursor
            info, table, _ = self.info_of(struct)
            return text + indented([
                "struct %s info = WAL_INIT(%s);" % (table, table), "napi_value made = NULL;",
                "if (call_check(call, %s(%s, &info, call_error(call)))) {" % (info, cursor),
                "    made = make_struct(call, &%s_out, &info);" % table, "}",
                "%s_close(%s);" % (struct, cursor), "return made;"]) + "}\n"
        return text + indented(self.returned(plan.results, store)) + "}\n"

    def run_text(self, name, function, words, plan, values):
        """The function of a job that calls the library, and what it needs."""
        text, finish = "", []
        for listed, member, callback, table, limit in plan.lists:
            text += self.callback_text(name, member, callback, table, [
                "struct %s_job *self = ctx;" % name,
                "if (self->%s.count < %s) {" % (listed, limit),
                "    list_add_struct(&self->%s, &self->job.arena, &%s, item);" % (listed, table),
                "}", *(["return job_must_stop(&self->job);"] if callback[0] != "void" else [])])
            finish.append("status = list_check(&self->%s, status, error);" % listed)
        if plan.cursor:
            cursor, struct = plan.cursor
            info, table, rows = self.info_of(struct)
            item = self.item_of(struct)
            if rows:
                text += NEXT % (name, struct)
            finish = [
                "if (status == WAL_OK && self->%s != NULL) {" % cursor,
                "    struct %s info = WAL_INIT(%s);" % (table, table),
                "    status = %s(self->%s, &info, error);" % (info, cursor),
                "    list_add_struct(&self->info, &job->arena, &%s_out, &info);" % table,
                *(["    if (status == WAL_OK) {",
                   "        status = list_fill(&self->rows, &job->arena, &%s_out, %s_next, "
                   "self->%s, UINT32_MAX, error);" % (item, name, cursor), "    }"]
                  if rows else []),
                "    %s_close(self->%s);" % (struct, cursor), "}",
                "status = list_check(&self->info, status, error);"]
            plan.variables += ["struct list info", *(["struct list rows"] if rows else [])]
            if not plan.results:
                plan.results = [(None, "list_first(call, &self->info, &%s_out)" % table)]
            else:
                plan.results = [(None, value) for _, value in plan.results]
            if rows:
                plan.results.append((rows, "list_structs(call, &self->rows, &%s_out)" % item))
        finish += ["status = session_identify(&self->%s, status, error);" % session
                   for session in plan.sessions]
        plan.variables += ["struct list %s" % listed for listed, *_ in plan.lists]
        called = plan.called(function, {**values, "@error": "error"})
        begin = ["enum wal_status status = %s;" % called]
        if "flushed" in words:
            plan.variables.append("bool is_flushed")
            plan.reads.append("self->is_flushed = value_bool(call, call_arg(call, %d));" %
                              plan.count)
            begin = ["enum wal_status status = self->is_flushed ? wal_flush(job->store->wal, error)"
                     " : WAL_OK;", "if (status == WAL_OK) {", "    status = %s;" % called, "}"]
        mine = ["struct %s_job *self = (struct %s_job *)job;" % (name, name)]
        return text + ("static enum wal_status %s_run(struct job *job, struct wal_error *error)\n"
                       "{\n%s}\n" % (name, indented([
                           *(mine if plan.variables else []),
                           *begin, *finish, "return status;"])))

    def watch_reads(self, name, plan):
        """A function for the progress of options, and the statements that set callbacks."""
        _, parameters = self.headers.callbacks[struct_of(
            {m[1]: m[0] for m in self.headers.structs[plan.struct]}["progress"])]
        text = "static int32_t %s_progress(void *ctx, %s)\n{\n%s}\n" % (
            name, ", ".join(" ".join(p[:2]) for p in parameters), indented([
                *("(void)%s;" % p[1] for p in parameters[:-2]),
                "return job_progress(ctx, %s);" % ", ".join(p[1] for p in parameters[-2:])]))
        members = ["progress", *(member for _, member, *_ in plan.lists)]
        plan.reads += ["%s.%s = %s_%s;" % (plan.options, member, name, member)
                       for member in members]
        plan.reads += ["%s.ctx = self;" % plan.options,
                       "job_watch_arg(call, &self->job, call_arg(call, %d));" % plan.count]
        plan.count += 1
        plan.results += [(listed, "list_structs(call, &self->%s, &%s)" % (listed, table))
                         for listed, _, _, table, _ in plan.lists]
        return text

    def call_job(self, name, function, _optional, words):
        plan = self.plan(function, words, "self->")
        gets, created, _, values = self.gets(plan, words)
        progress = self.watch_reads(name, plan) if plan.options else ""
        run = self.run_text(name, function, words, plan, values)
        news = [(n, made) for n, made in plan.results if made in self.handles]
        mine = ["struct %s_job *self = (struct %s_job *)job;" % (name, name)]
        text = "struct %s_job {\n    struct job job;\n%s};\n" % (
            name, indented(v + ";" for v in plan.variables)) + progress + run
        finish = discard = "NULL"
        if plan.results:
            finish = name + "_finish"
            text += ("static napi_value %s(struct call *call, struct job *job)\n{\n%s}\n" % (
                finish, indented([
                    *mine, *("struct %s *%s = self->%s;" % (made, n, n) for n, made in news),
                    *("self->%s = NULL;" % n for n, _ in news),
                    *self.returned(plan.results, "job->store")])))
        if news or plan.sessions:
            discard = name + "_discard"
            text += "static void %s(struct job *job)\n{\n%s}\n" % (discard, indented([
                *mine, *("%s(self->%s);" % (self.handles[made][1], n) for n, made in news),
                *("session_discard(&self->%s);" % n for n in plan.sessions)]))
        stores = [n for n, struct in plan.handles if struct == "wal_store"]
        other = ["job_use_store(&self->job, %s);" % stores[0]] if len(stores) > 1 else []
        return text + (
            'static const struct job_kind %s_kind = {"%s", sizeof(struct %s_job), %s_run, %s, '
            "%s};\nstatic napi_value call_%s(struct call *call)\n{\n%s}\n" % (
                name, name, name, name, finish, discard, name, indented([
                    *gets, "struct %s_job *self = job_create(call, &%s_kind, %s);" % (
                        name, name, created),
                    "if (self == NULL) {", "    return NULL;", "}", *other, *plan.reads,
                    "return job_start(call, &self->job);"])))

    def call_list(self, name, cursor, _optional, words):
        plan = self.plan(cursor + "_open", words)
        gets, _, values, _ = self.gets(plan, words)
        return NEXT % (name, cursor) + (
            "static napi_value call_%s(struct call *call)\n{\n%s}\n" % (name, indented([
                *gets,
                *(self.zeroed(v) + ";" for v in plan.variables),
                *plan.reads, "if (call->failed || !call_check(call, %s)) {" % plan.called(
                    cursor + "_open", {**values, "@error": "call_error(call)"}),
                "    return NULL;", "}",
                "napi_value array = make_rows(call, &%s_out, %s_next, %s, UINT32_MAX);" % (
                    self.item_of(cursor), name, plan.cursor[0]),
                "%s_close(%s);" % (cursor, plan.cursor[0]), "return array;"])))

    def call_each(self, name, function, is_optional, words):
        plan = self.plan(function, words)
        gets, _, values, _ = self.gets(plan, words)
        called = plan.called(function, {**values, "@error": "call_error(call)"})
        made = self.returned(plan.results, "")
        made[-1] = "array_push(call, array, index, %s);" % made[-1][len("return "):-1]
        return "static napi_value call_%s(struct call *call)\n{\n%s}\n" % (name, indented([
            *gets, "napi_value array = make_array(call);",
            "for (uint32_t index = 0; !call->failed; index++) {",
            *("    %s;" % self.zeroed(v) for v in plan.variables if v != "uint32_t index"),
            "    enum wal_status status = %s;" % called,
            "    if (status == WAL_END || (%s!call_check(call, status))) {" % (
                "status != WAL_ENOTFOUND && " if is_optional else ""), "        break;", "    }",
            *("    " + statement for statement in made), "}", "return array;"]))

    @staticmethod
    def call_names(name, function, _optional, _rest):
        return ("static napi_value call_%s(struct call *call)\n{\n"
                "    return make_names(call, %s);\n}\n" % (name, function))


    # --- records.txt ---

    TYPES = {**dict.fromkeys(("U32", "U64", "I32", "I64", "MS", "DOUBLE"), "number"),
             **dict.fromkeys(("OR_NULL", "ID", "NO_DIGEST"), "string | null"),
             **dict.fromkeys(("BOOL", "FLAG"), "boolean"), "CODE": "ErrorCode | null",
             "U64_OR_NULL": "number | null", "COUNTS": "Record<string, number>",
             "ERROR": "WalError | null"}
    GIVEN = {"Any": "any", "dict[str, Any] | None": "JsonObject | null"}

    def type_of(self, field):
        """The type of a field in TypeScript."""
        if field["kind"] == "NAME":
            return " | ".join("'%s'" % name for name in re.findall(r'"(\w+)"', field["names"]))
        return self.TYPES.get(field["kind"], "string")

    def item_type(self, table, records):
        """The type of an item of a list."""
        struct, fields = self.tables[table]
        if struct in records:
            return records[struct]
        if len(fields) == 1:
            return self.type_of(fields[0]).replace(" | null", "")
        return "{ %s }" % "; ".join(
            "%s: %s" % (field["name"], self.type_of(field)) for field in fields)

    def declarations(self):
        """The interfaces of what records.txt lists, and the codes of errors."""
        records, made = {}, [
            "// What calls return: see index.d.ts.\n\n"
            "import type { JsonObject, WalError } from './index.js';\n",
            "/** Codes of errors: those of agentwal.h. */\nexport type ErrorCode =%s;\n" %
            "".join("\n  | '%s'" % code for code in self.headers.codes)]
        for struct, names, sentence, said, table, lists in self.described():
            records[struct] = names[-1]
            lines = ["/** %s */" % sentence, "export interface %s {" % names[-1]]
            fields = [(f["name"], self.type_of(f), f["kind"]) for f in table]
            fields += [(name, self.item_type(items, records) + "[]", "") for name, items in lists]
            most = {f["name"]: int(f["mask"]) for f in self.tables[struct + "_out"][1]
                    if f["kind"] == "STRUCTS" and "mask" in f}
            for name, type_, kind in fields:
                given, doc = said.get(name, (None, ""))
                if name in most:
                    doc = "%s At most the first %s." % (doc, "{:,}".format(most[name]))
                if given != "-":
                    doc = re.sub(r"`(\w+)`", lambda m: "`%s`" % self.name(m[1]), doc)
                    doc = re.sub(r"\bNone\b", "undefined" if kind == "OR_NONE" else "null", doc)
                    doc = doc.replace("False:", "false:")
                    doc = "\n   * ".join(textwrap.wrap(doc, 90))
                    lines += ["  /** %s */" % doc] if doc else []
                    lines.append("  %s: %s;" % (name, self.GIVEN.get(given, type_)))
            made.append("\n".join([*lines, "}"]) + "\n")
        return "\n".join(made)


class Python(Binding):
    VALUE = "args[%d]"
    VARIABLES = {**Binding.VARIABLES, "structs": ("void *{name}", "{place}")}
    KINDS = {**NUMBERS, "ns": "I64", "const struct wal_error *": "ERROR", "const char *": "STRING"}
    CONTENTS = ("payload", "content", "piece", "metadata", "meta", "value")
    HANDLES = {"wal_store": "STORE", "wal_session": "SESSION", "wal_blob": "BLOB",
               "wal_view": "VIEW", "wal_blob_writer": "WRITER", "wal_import_follow": "FOLLOW",
               "wal_search": "SEARCH", "wal_ticket": "TICKET"}
    READ = {"TEXT": "text", "PATH": "path", "CONTENT": "content", "U32": "u32", "U64": "u64",
            "I64": "i64", "I32": "bool"}
    READS = {
        "value": 'value_{read}(state, {value}, "{name}", &{name})',
        "const char *": 'value_system_path(state, {value}, "{name}", &{name})',
        "digest": 'value_some_digest(state, {value}, "{name}", {name})',
        "content": 'content_take(state, {value}, "{name}", &{name})',
        "texts": 'value_slices(state, {value}, "{name}", true, &{name}, &{count})',
        "structs": 'value_rows(state, {value}, "{name}", &{struct}_in, &{name}, &{count})'}
    RESULTS = {
        "result": "value_dict(state, &{struct}_out, &{name})",
        "wal_append_result": "batch_result(&{name})",
        "uint64_t *": "PyLong_FromUnsignedLongLong({name})",
        "int32_t *": "PyBool_FromLong({name})", "fd": "PyLong_FromLong({name})",
        "const char **": "value_str((struct wal_slice){{{name}, strlen({name})}})",
        "uint8_t[": "value_hex({name}, sizeof({name}))", "char[": "PyUnicode_FromString({name})",
        "new": "{struct}"}
    FREES = {"content": "content_release(&{name});", "texts": "free({name});",
             "structs": "free({name});"}
    ADD = ("if (call.status == WAL_OK) {", "    list_add_struct(&rows, &call.arena, &%s, &%s);",
           "    call.status = list_check(&rows, call.status, &call.error);", "}")
    FILL = "list_fill(&rows, &call.arena, &%s_out, %s_next, %s, UINT32_MAX, &call.error);"
    HEAD = ("static PyObject *call_%s(PyObject *module, PyObject *const *args, "
            "Py_ssize_t given)\n{\n")

    def __init__(self, spec, headers):
        super().__init__(spec, headers)
        self.handles.update((struct, (kind,)) for struct, kind in self.HANDLES.items())

    @staticmethod
    def name(member):
        return member

    def text(self):
        text = self.all_text(
            ['"bindings/python/src/core/interface.h"', "<stdlib.h>", "<string.h>",
             '"bindings/python/src/core/call.h"', '"bindings/python/src/core/module.h"'], [])
        return text + (
            "\nPyMethodDef interface_methods[] = {\n%s    {0},\n};\n"
            "\nconst struct constant constants[] = {\n%s    {NULL, 0},\n};\n" % (
                self.methods('MODULE_FUNCTION("%s", call_%s)'),
                indented('{"%s", WAL_%s},' % (name, name) for name in self.constants)))

    @staticmethod
    def handle_count(plan, words):
        return 1 if "either" in words else len(plan.handles)

    def add_options(self, plan, words, filled):
        name, struct = filled["name"], filled["struct"]
        table = struct + "_in"
        fields = self.tables[table][1] if table in self.tables else []
        set_ = ""
        for field in fields:
            if field["kind"] == "STRUCT":
                inner = field["items"][1:-len("_in")]
                plan.variables.append("struct %s %s_%s" % (inner, name, field["member"]))
                set_ += ", .%s = &%s_%s" % (field["member"], name, field["member"])
            elif field["kind"] == "TEXTS":
                plan.frees.append("free((void *)(uintptr_t)%s.%s);" % (name, field["member"]))
        plan.variables.append("struct %s %s = {.struct_size = sizeof(%s)%s}" % (
            struct, name, name, set_))
        plan.arguments.append("&" + name)
        if "flat" in words:
            for field in fields:
                plan.reads.append('value_%s(state, args[%d], "%s", &%s.%s)' % (
                    self.READ[field["kind"]], plan.count, field["name"], name, field["member"]))
                plan.count += 1
        elif fields:
            plan.reads.append('value_row(state, args[%d], "%s", &%s, &%s)' % (
                plan.count, name, table, name))
            plan.count += 1

    def body(self, name, plan, words, called, made):
        """A function: reads the arguments, takes the handles, and runs the statements of `called`
        without the interpreter's lock (None: with it) and then those of `made`, which set it."""
        names, frees = [handle for handle, _ in plan.handles], plan.frees
        variables = ["PyObject *made", "struct call call",
                     *plan.variables]
        checks = ['value_count(module, "%s", given, %d)' % (
            name, plan.count + bool(plan.options) + self.has_project(plan)), *plan.reads]
        if "either" in words:
            variables.append("void *pointer")
            checks.append("(pointer = call_begin(&call, module, args[0], HANDLE_SHARED)) != NULL")
        else:
            for i, (handle, struct) in enumerate(plan.handles):
                variables.append("struct %s *%s" % (struct, handle))
                checks.append("(%s = call_begin(&%s, module, args[%d], HANDLE_%s)) != NULL" % (
                    handle, "call" if handle == names[-1] else "other", i,
                    self.handles[struct][0]))
            if len(plan.handles) > 1:
                variables.append("struct call other")
                frees = [*frees, "call_end(&other);"]
        if plan.options or plan.change:
            variables.append("struct callback callback")
            checks.append("callback_begin(&callback, &call, %s, %s, %s)" % (
                "args[%d]" % plan.count if plan.options else "Py_None",
                "args[%d]" % (plan.count + 1) if self.has_project(plan) else "Py_None",
                "args[%d]" % plan.change if plan.change else "Py_None"))
            frees = ["callback_end(&callback);", *frees]
        if plan.options:
            called = [*("%s.%s = %s;" % (plan.options, member, function)
                        for member, function in self.callbacks_of(name, plan)), *called]
        return self.HEAD % name + indented([
            "struct module_state *state = module_state(module);",
            *((v if " = " in v else self.zeroed(v)) + ";" for v in variables), "(void)args;",
            "(void)state;",
            *([] if plan.handles else ["call_begin_free(&call, module);"]),
            "if (%s) {" % " &&\n        ".join(checks),
            *("    " + s for s in (["call_unlock(&call);", *called, "call_lock(&call);"]
                                   if called else [])),
            *("    " + statement for statement in made), "}", *frees, "call_end(&call);",
            "return made;"]) + "}\n"

    def has_project(self, plan):
        """Whether the options have a function for the project of a directory."""
        return bool(plan.options) and "wal_import_project_fn *" in [
            m[0] for m in self.headers.structs[plan.struct]]

    def callbacks_of(self, name, plan):
        progress = "callback_progress"
        if self.has_project(plan):
            progress = "callback_progress_of_path"
            yield "project", "callback_project"
        yield "progress", progress
        yield from ((member, "%s_%s" % (name, member)) for _, member, *_ in plan.lists)
        yield "ctx", "&callback"

    def values(self, plan, words):
        if "either" in words:
            return {"@" + name: "call.handle->kind == HANDLE_%s ? pointer : NULL" %
                    self.handles[struct][0] for name, struct in plan.handles}
        return {"@" + name: name for name, _ in plan.handles}

    def tuple_of(self, results):
        """The value of results: None, one, or a tuple."""
        results = ["call_object(&call, HANDLE_%s, %s)" % (self.handles[made][0], name)
                   if made in self.handles else made for name, made in results]
        if len(results) < 2:
            return results[0] if results else "Py_NewRef(Py_None)"
        return 'Py_BuildValue("%s", %s)' % ("N" * len(results), ", ".join(results))

    def added(self, table, place):
        """Statements that copy what a call gave."""
        return [line if "%" not in line else line % (table, place) for line in self.ADD]

    def call_call(self, name, function, is_optional, words):
        plan = self.plan(function, words)
        type_ = self.headers.functions[function][0]
        called = plan.called(function, {**self.values(plan, words), "@error": "&call.error"})
        if not type_.startswith("enum"):
            return self.body(name, plan, words, None, ["made = %s;" % {
                "uint64_t": "PyLong_FromUnsignedLongLong(%s)",
                "int32_t": "PyBool_FromLong(%s)"}.get(type_, "PyUnicode_FromString(%s)") % called])
        table = re.match(r"value_dict\(state, &(\w+), &(\w+)", plan.results[0][1] if plan.results
                         else "")
        # Text of the library holds until the next call on the handle.
        has_text = plan.handles and table and any(
            field["kind"] in ("TEXT", "PATH", "CONTENT", "OR_NULL")
            for field in self.tables[table[1]][1])
        calls, text = ["call.status = %s;" % called], ""
        if has_text:
            plan.variables.append("struct list rows")
            plan.results[0] = (plan.results[0][0],
                               "value_dict(state, &%s, rows.first + 1)" % table[1])
            calls += self.added(table[1], table[2])
        if has_text or "locked" in words:
            calls = ["(void)pthread_mutex_lock(&call.handle->slices);", *calls,
                     "(void)pthread_mutex_unlock(&call.handle->slices);"]
        if plan.cursor:
            more, calls_more = self.cursor_text(name, plan)
            text += more
            calls += calls_more
        for i, (_, member, callback, table, limit) in enumerate(plan.lists):
            text += self.callback_text(name, member, callback, table, [
                "%scallback_item(ctx, %d, &%s, item, %s);" % (
                    "(void)" if callback[0] == "void" else "return ", i, table, limit)])
        made = self.tuple_of(plan.results)
        if plan.lists:
            made = "callback_lists(&callback, %s, (const char *const[]){%s, NULL})" % (
                made, ", ".join('"%s"' % listed[0] for listed in plan.lists))
        return text + self.body(name, plan, words, calls, [
            *(["if (call.status == WAL_ENOTFOUND) {", "    made = Py_NewRef(Py_None);",
               "} else if (!call_failed(&call)) {"] if is_optional else
              ["if (!call_failed(&call)) {"]), "    made = %s;" % made, "}"])

    def cursor_text(self, name, plan):
        """For a cursor that a function returns: a function, and statements after the call."""
        cursor, struct = plan.cursor
        info, table, rows = self.info_of(struct)
        item = self.item_of(struct) if rows else table
        plan.variables += ["struct %s info" % table, "struct list rows"]
        if rows:
            if not plan.results:
                plan.results = [("info", "value_dict(state, &%s_out, &info)" % table)]
            plan.results.append((rows, "value_list(state, &%s_out, &rows)" % item))
        else:
            plan.results = [("info", "value_dict(state, &%s_out, rows.first + 1)" % item)]
        return (NEXT % (name, struct) if rows else ""), [
            "if (call.status == WAL_OK && %s != NULL) {" % cursor,
            "    call.status = %s(%s, &info, &call.error);" % (info, cursor),
            *(["    if (call.status == WAL_OK) {",
               "        call.status = " + self.FILL % (item, name, cursor), "    }"] if rows else
              ["    " + line for line in self.added(table + "_out", "info")]),
            "    %s_close(%s);" % (struct, cursor), "}"]

    def call_list(self, name, cursor, _optional, words):
        plan = self.plan(cursor + "_open", words)
        item = self.item_of(cursor)
        plan.variables.append("struct list rows")
        return NEXT % (name, cursor) + self.body(name, plan, words, [
            "call.status = %s;" % plan.called(
                cursor + "_open", {**self.values(plan, words), "@error": "&call.error"}),
            "if (call.status == WAL_OK) {",
            "    call.status = " + self.FILL % (item, name, plan.cursor[0]), "}",
            "%s_close(%s);" % (cursor, plan.cursor[0])], [
                "if (!call_failed(&call)) {",
                "    made = value_list(state, &%s_out, &rows);" % item, "}"])

    def call_each(self, name, function, is_optional, words):
        plan = self.plan(function, words)
        called = plan.called(function, {**self.values(plan, words), "@error": "&call.error"})
        inner = [v for v in plan.variables if not v.startswith("uint32_t index")]
        plan.variables = []
        plan.reads = [read for read in plan.reads if '"index"' not in read]
        plan.count -= 1
        return self.body(name, plan, words, None, [
            "made = PyList_New(0);", "for (uint32_t index = 0; made != NULL; index++) {",
            *("    %s;" % self.zeroed(v) for v in inner), "    call.status = %s;" % called,
            "    if (call.status == WAL_END) {", "        break;", "    }",
            "    if ((%scall_failed(&call)) || !value_add(made, %s)) {" % (
                "call.status != WAL_ENOTFOUND && " if is_optional else "",
                self.tuple_of(plan.results)),
            "        value_clear(&made);", "    }", "}"])

    def call_names(self, name, function, _optional, _rest):
        return self.body(name, Plan(), (), None, ["made = value_names(%s);" % function])

    # --- records.txt ---

    TYPES = {**dict.fromkeys(("U32", "U64", "I32", "I64"), "int"),
             **dict.fromkeys(("OR_NULL", "OR_NONE", "ID", "NO_DIGEST", "CODE"), "str | None"),
             **dict.fromkeys(("BOOL", "FLAG"), "bool"), "U64_OR_NULL": "int | None",
             "DOUBLE": "float", "COUNTS": "dict[str, int]", "ERROR": "Error | None"}

    def item_type(self, table, records):
        """The type of an item of a list, and what makes it of the item of a row."""
        struct, fields = self.tables[table]
        if struct in records:
            return records[struct], records[struct] + ".of"
        if len(fields) == 1:
            return self.TYPES[fields[0]["kind"]].replace(" | None", ""), None
        return "tuple[%s]" % ", ".join(self.TYPES[f["kind"]] for f in fields), "values"

    def records(self):
        """The module of the classes that records.txt lists."""
        records, made = {}, [
            '"""What calls return."""\n\nfrom __future__ import annotations\n\n'
            "from typing import Any\n\nfrom ._errors import Error, code_of\n"
            "from ._record import Record, tuples, values\n"]
        for struct, (name, *_), sentence, said, table, lists in self.described():
            records[struct] = name
            fields, makers = [], {}
            for field in table:
                more = ""
                if field["kind"] == "NAME":
                    names = re.findall(r'"\w+"', field["names"])
                    more = " %s or %s." % (", ".join(names[:-1]), names[-1])
                fields.append((field["name"], self.TYPES.get(field["kind"], "str"), more))
                if field["kind"] == "CODE":
                    makers[field["name"]] = "code_of"
            for listed, items in lists:
                type_, maker = self.item_type(items, records)
                fields.append((listed, "tuple[%s, ...]" % type_, ""))
                makers[listed] = "tuples(%s)" % (maker or "")
            lines = ["class %s(Record):" % name, '    """%s"""' % sentence, ""]
            for field, type_, more in fields:
                given, doc = said.get(field, (None, ""))
                if given != "-":
                    lines.append("    %s: %s" % (field, given or type_))
                    doc = (doc + more).strip()
                    lines += ['    """%s"""' % doc] if doc else []
            if makers:
                lines += ["", "    _makers = {%s}" % ", ".join(
                    '"%s": %s' % maker for maker in makers.items())]
            made.append("\n".join(lines) + "\n")
        return "\n\n".join(made)


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("node", "python", "records", "declarations"):
        print(__doc__, file=sys.stderr)
        return 2
    what, spec, output = sys.argv[1:]
    binding = (Node if what in ("node", "declarations") else Python)(spec, Headers())
    made = getattr(binding, what)() if what in ("records", "declarations") else (
        "/* Made by bindings/generate.py. */\n" + binding.text())
    # At once: another build may read it.
    with open(output + ".new", "w", encoding="utf-8") as file:
        file.write(made)
    os.replace(output + ".new", output)
    return 0


sys.exit(main())
