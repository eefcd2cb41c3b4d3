#!/usr/bin/env python3
"""Makes C of a binding from the public headers and lists of what it has.

  generate.py node|python SPEC OUTPUT

It reads structs.txt, which is for all bindings, and SPEC, the interface.txt of
one. Each line is one of these; a line that begins with spaces continues the one
before. Names of fields are as in C; those of JavaScript are made of them.

  in STRUCT MEMBER...
      The table STRUCT_in: members that a caller sets, in the order of the
      arguments; NAME=MEMBER for another name in messages.
  out [TABLE] STRUCT [only] FIELD...
      The table STRUCT_out, or TABLE_out: members that a caller gets. These are
      all but flags of which the fields name bits, and what has no value in the
      language, with the exceptions that the fields name; with `only`, those that
      the fields name. They are in the order of the struct, with bits of flags
      last; fields that are named before `...` are the first, and those after it
      the last.
        MEMBER?           null (None) when it is empty; MEMBER?undefined
        -MEMBER           left out
        NAME=MEMBER       under another name
        NAME=MEMBER&MASK  whether bits of flags are set
        MEMBER:A,B,...    one of these names
        MEMBER:code       a status: the name of its code (Python: its number)
        MEMBER:bool
  list NAME CURSOR        a function for all that a cursor returns
  names NAME FUNCTION     a function for the names of all indexes

For Node.js:

  handle STRUCT NAME CLOSE [shared] [WORDS]
      A kind of handles: NAME_type, named WORDS in messages.
  now NAME FUNCTION       a function that calls the library at once
  now? NAME FUNCTION      likewise; WAL_ENOTFOUND is null
  job NAME FUNCTION       a function that calls it in another thread

For Python:

  call NAME FUNCTION [flat]
      A function that calls the library without the interpreter's lock. flat:
      the fields of options are arguments, in place of one row of them.
  call? NAME FUNCTION     likewise; WAL_ENOTFOUND is None
  constants NAME...       constants of the module, without WAL_

The arguments of a function are those of the library's: handles and values, the
fields of options, a watch (Python: a function) where the options have progress.
What the library returns by pointers is the result: one value, or an object of
them (Python: a tuple).
"""
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PATHS = ("path", "root", "directory", "exclude")
NUMBERS = {"uint32_t": "U32", "uint64_t": "U64", "int32_t": "I32", "int64_t": "I64",
           "double": "DOUBLE"}


def indented(statements):
    return "".join("    %s\n" % statement for statement in statements)


class Headers:
    """The structs and functions of the public headers."""

    def __init__(self):
        self.names, self.structs, self.functions, self.codes = [], {}, {}, []
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
            self.structs[name] = [
                re.fullmatch(r"(.*?) ?(\w+)(?:\[(\w+)\])?", " ".join(line.split())).groups()
                for line in body.split(";") if line.strip()]
        self.codes += re.findall(r"^    (WAL_E[A-Z]+) = -\d+\b", text, re.M)
        for result, name, parameters in re.findall(
                r"WAL_API (?:WAL_MUST_USE )?([\w\s*]+?)\s*\b(wal_\w+)\(([^;]*?)\);", text):
            self.functions[name] = (result, [
                re.fullmatch(r"(.*?) ?(\w+)(\[\w+\])?", " ".join(parameter.split())).groups()
                for parameter in parameters.split(",") if parameter.strip() != "void"])


class Binding:
    """What is common: the lists, the tables, and how a function is called."""

    def __init__(self, spec, headers):
        self.headers = headers
        self.tables = {}  # name: (struct, [(name, kind, member, mask, names)])
        self.handles = {}  # struct: (name, close, is shared, words)
        self.calls = []  # (how, name, function, modifiers)
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
                (name or self.name(member), self.kind_of(*members[member]), member, "0", None)
                for name, _, member in named])
        elif what == "out":
            table = words[0]
            if words[1:2] and words[1] in self.headers.structs:
                words = words[1:]
            self.tables[table + "_out"] = (words[0], self.fields(*words))
        elif what == "constants":
            self.constants += words
        else:
            self.calls.append((what, words[0], words[1], words[2:]))

    def kind_of(self, type_, name, size):
        """The kind of a member without what a list says, or None."""
        if "reserved" in name or name == "struct_size":
            return None
        if type_ == "struct wal_slice":
            return "PATH" if name in PATHS else "CONTENT" if name in self.CONTENTS else "TEXT"
        if type_ == "uint8_t" and size:
            return "UUID" if size == "16" else "DIGEST"
        if type_ == "char" and size:
            return "CHARS"
        return None if size else self.KINDS.get("ns" if name.endswith("_ns") else type_)

    def fields(self, struct, *words):
        members = {m[1]: m for m in self.headers.structs[struct]}
        left_out = {word[1:] for word in words if word.startswith("-")}
        first, last = {}, {}  # by what they read
        for i, word in enumerate(words):
            match = re.fullmatch(r"(?:(\w+)=)?(\w+)(?:&(\w+)|\?(\w*)|:([\w,]+))?", word)
            if word == "only" or match is None:
                continue
            name, member, mask, empty, value = match.groups()
            kind, names = self.kind_of(*members[member]), None
            if kind is None:
                continue
            if mask:
                kind = "FLAG"
                left_out.add(member)
            elif empty is not None:
                kind = {"TEXT": "OR_NONE" if empty else "OR_NULL", "CONTENT": "OR_NULL",
                        "CHARS": "ID", "DIGEST": "NO_DIGEST", "U64": "U64_OR_NULL"}[kind]
            elif value in ("code", "bool"):
                kind = value.upper()
            elif value:
                kind, names = "NAME", value.split(",")
            (first if "..." in words[i:] else last)[member, mask] = (
                self.name(name or member), kind, member, mask or "0", names)
        rest = []
        for member, value in members.items():
            if (member, None) in first or member in left_out:
                continue
            if "..." not in words and (member, None) in last:
                rest.append(last.pop((member, None)))
            elif (member, None) not in last and "only" not in words and self.kind_of(*value):
                rest.append((self.name(member), self.kind_of(*value), member, "0", None))
        return [*first.values(), *rest, *last.values()]

    def field_text(self, struct, name, kind, member, mask, names):
        listed = "NULL"
        if names:
            mask = str(len(names))
            listed = "(const char *const[]){%s}" % ", ".join('"%s"' % item for item in names)
        return ('    {"%s", %s_%s, offsetof(struct %s, %s), sizeof(((struct %s *)0)->%s), %s, '
                "%s},\n" % (name, self.PREFIX, kind, struct, member, struct, member, mask, listed))

    def table_text(self, name):
        struct, fields = self.tables[name]
        return ("static const struct %s %s_fields[] = {\n%s};\n"
                "const struct %s %s = {%s_fields, %d, sizeof(struct %s)};\n" % (
                    self.FIELD, name, "".join(self.field_text(struct, *f) for f in fields),
                    self.TABLE, name, name, len(fields), struct))

    def all_text(self, includes, functions):
        """The file: includes, tables, functions, and what the binding adds."""
        return "\n".join([
            *("#include %s\n" % name for name in includes),
            *("#include <%s>\n" % name for name in self.headers.names),
            *map(self.table_text, self.tables), *functions,
            *(getattr(self, "call_" + how.rstrip("?"))(name, function, how.endswith("?"), rest)
              for how, name, function, rest in self.calls)])

    def parameters(self, function):
        """(what, name, what fills the texts of PARAMETERS) of each parameter."""
        for type_, name, size in self.headers.functions[function][1]:
            struct = re.sub(r"const |struct | ?\*", "", type_)
            filled = {"name": name, "type": type_, "size": size, "struct": struct}
            if struct == "wal_error":
                what = "error"
            elif type_.endswith("**") and struct in self.handles:
                what = "new"
            elif struct == "wal_store" or struct in self.handles:
                what = "handle"
            elif type_ == "struct wal_slice" or (type_ in NUMBERS and not size):
                what = "value"
                filled["read"] = self.READ[self.kind_of(type_, name, size)]
            elif size:
                what = "digest" if type_.startswith("const") else type_ + size[:1]
            elif type_.startswith("const struct"):
                what = "options"
            else:
                what = "result" if struct in self.headers.structs else type_
            yield what, name, filled

    def cursor(self, cursor, *rest):
        """The struct that it fills, and how it is opened."""
        item = self.headers.functions[cursor + "_next"][1][1][0]
        self.handles[cursor] = ("",)
        plan = self.plan(cursor + "_open", *rest)
        del self.handles[cursor]
        return re.sub(r"struct | ?\*", "", item), plan


# A function that fills a struct from a cursor.
NEXT = ("static enum wal_status %s_next(void *cursor, void *item, struct wal_error *error)\n"
        "{\n    return %s_next(cursor, item, error);\n}\n")


class Node(Binding):
    FIELD, TABLE, PREFIX = "field", "table", "FIELD"
    KINDS = {**NUMBERS, "ns": "MS", "const struct wal_error *": "ERROR"}
    CONTENTS = ("payload", "content", "piece")
    READ = {"TEXT": "text", "PATH": "path_slice", "CONTENT": "bytes", "U32": "u32", "U64": "u64",
            "I64": "i64", "I32": "bool"}
    # A variable, a statement that reads it, an argument, a result.
    PARAMETERS = {
        "value": ("{type} {name}", "{place} = value_{read}(call, {value});", "{place}", ""),
        "const char *": ("const char *{name}", "{place} = value_path(call, {value});", "{place}",
                         ""),
        "digest": ("uint8_t {name}{size}", "value_digest(call, {value}, {place});", "{place}", ""),
        "result": ("struct {struct} {name}", "{place}.struct_size = sizeof({place});", "&{place}",
                   "make_struct(call, &{struct}_out, &{place})"),
        "uint64_t *": ("uint64_t {name}", "", "&{place}", "make_number(call, {place})"),
        "const char **": ("const char *{name}", "", "&{place}", "make_string(call, {place})"),
        "uint8_t[": ("uint8_t {name}{size}", "", "{place}", "make_digest(call, {place})"),
        "char[": ("char {name}{size}", "", "{place}", "make_optional(call, (struct wal_slice)"
                  "{{{place}, strlen({place})}})"),
        "new": ("struct {struct} *{name}", "", "&{place}", "{struct}")}

    @staticmethod
    def name(member):
        member = re.sub(r"_(ms|ns)$", "", member)
        return re.sub(r"_(\w)", lambda m: m[1].upper(), member)

    def text(self):
        text = self.all_text(
            ['"bindings/node/native/interface.h"', "<string.h>",
             '"bindings/node/native/base/value.h"', '"bindings/node/native/store/job.h"',
             '"bindings/node/native/store/store.h"'],
            ["static void close_%s(void *object)\n{\n    %s(object);\n}\n"
             'const struct handle_type %s_type = {"%s", close_%s, %s};\n' % (
                 name, close, name, words, name, str(shared).lower())
             for name, close, shared, words in self.handles.values()])
        return text + (
            "\nconst char *status_code(int32_t status)\n{\n    switch (status) {\n%s"
            '    default:\n        return "WAL_OK";\n    }\n}\n' % indented(
                'case %s: return "%s";' % (code, code) for code in self.headers.codes)) + (
            "\nconst struct call_method interface_methods[] = {\n%s    {NULL, NULL},\n};\n" %
            indented('{"%s", call_%s},' % (name, name) for _, name, _, _ in self.calls))

    def plan(self, function, owner=""):
        """How a function is called: (the handle, its struct, variables, statements
        that read the arguments, arguments, [(name, result)])."""
        parameters = list(self.parameters(function))
        structs = [filled["struct"] for what, _, filled in parameters if what == "handle"]
        handle, struct, index = None, None, 1 if structs else 0
        variables, reads, arguments, results, watch = [], [], [], [], []
        for what, name, filled in parameters:
            place, detail = owner + name, filled["struct"]
            filled.update(place=place, value="call_arg(call, %d)" % index)
            if what == "error":
                arguments.append("@error")
            elif what == "handle":
                # A session is given without its store.
                if detail != "wal_store" or len(structs) == 1:
                    handle, struct = name, detail
                arguments.append("@" + ("store" if detail == "wal_store" else "object"))
            elif what == "options":
                table = detail + "_in"
                variables.append("struct %s %s" % (detail, name))
                if table in self.tables:
                    reads.append("read_struct(call, %d, &%s, &%s);" % (index, table, place))
                    index += len(self.tables[table][1])
                else:
                    reads.append("%s.struct_size = sizeof(%s);" % (place, place))
                arguments.append("&" + place)
                if any(m[1] == "progress" for m in self.headers.structs[detail]):
                    watch = [place + ".progress = job_progress;", place + ".ctx = &self->job;"]
            else:
                variable, read, argument, result = (
                    text.format(**filled) for text in self.PARAMETERS[what])
                variables.append(variable)
                arguments.append(argument)
                reads += [read] if read else []
                results += [(name, result)] if result else []
                index += "{value}" in self.PARAMETERS[what][1]
        if watch:
            reads += watch + ["job_watch_arg(call, &self->job, call_arg(call, %d));" % index]
        return handle, struct, variables, reads, arguments, results

    def get(self, struct, name):
        """The statement that gets the handle of the first argument."""
        if struct == "wal_store":
            return "struct store *%s = store_get(call, 0);" % name
        return "struct handle *%s = handle_get(call, 0, &%s_type);" % (
            name, self.handles[struct][0])

    def returned(self, results, store):
        """Statements that return what the results are."""
        results = [(name, "handle_make(call, &%s_type, %s, %s)" % (
            self.handles[made][0], store, name) if made in self.handles else made)
                   for name, made in results]
        if not results:
            return ["return make_undefined(call);"]
        if len(results) == 1:
            return ["return %s;" % results[0][1]]
        return ["napi_value object = make_object(call);",
                *('object_set(call, object, "%s", %s);' % result for result in results),
                "return object;"]

    def call_now(self, name, function, is_optional, _):
        type_ = self.headers.functions[function][0]
        handle, struct, variables, reads, arguments, results = self.plan(function)
        head = "static napi_value call_%s(struct call *call)\n{\n" % name
        if type_ == "void":
            return head + (
                "    struct handle *handle = handle_find(call, 0, &%s_type);\n"
                "    if (handle != NULL) {\n        handle_close(handle);\n    }\n"
                "    return make_undefined(call);\n}\n" % self.handles[struct][0])
        store = handle if struct == "wal_store" else "%s->store" % handle
        values = {"@store": store + "->wal", "@object": "%s->object" % handle,
                  "@error": "call_error(call)"}
        called = "%s(%s)" % (function, ", ".join(values.get(a, a) for a in arguments))
        text = head + indented([
            *([self.get(struct, handle)] if handle else []),
            *("%s = %s;" % (v, "{0}" if "[" in v or re.match(r"struct \w+ \w", v) else "0")
              for v in variables),
            *reads, "if (call->failed) {", "    return NULL;", "}"])
        if not type_.startswith("enum"):
            return text + "    return make_%s(call, %s);\n}\n" % {
                "uint64_t": ("number", called), "int32_t": ("bool", called + " != 0")}.get(
                    type_, ("string", called))
        return text + indented([
            "enum wal_status status = %s;" % called,
            *(["if (status == WAL_ENOTFOUND) {", "    return make_null(call);", "}"]
              if is_optional else []),
            "if (!call_check(call, status)) {", "    return NULL;", "}",
            *self.returned(results, store)]) + "}\n"

    def call_job(self, name, function, _optional, _rest):
        handle, struct, variables, reads, arguments, results = self.plan(function, "self->")
        news = [(n, made) for n, made in results if made in self.handles]
        values = {"@store": "job->store->wal", "@object": "job->handle->object",
                  "@error": "error"}
        mine = ["struct %s_job *self = (struct %s_job *)job;" % (name, name)]
        text = "struct %s_job {\n    struct job job;\n%s};\n" % (
            name, indented(v + ";" for v in variables))
        text += ("static enum wal_status %s_run(struct job *job, struct wal_error *error)\n"
                 "{\n%s}\n" % (name, indented([
                     *(mine if variables else []), "return %s(%s);" % (
                         function, ", ".join(values.get(a, a) for a in arguments))])))
        finish = discard = "NULL"
        if results:
            finish = name + "_finish"
            text += ("static napi_value %s(struct call *call, struct job *job)\n{\n%s}\n" % (
                finish, indented([
                    *mine, *("struct %s *%s = self->%s;" % (made, n, n) for n, made in news),
                    *("self->%s = NULL;" % n for n, _ in news),
                    *self.returned(results, "job->store")])))
        if news:
            discard = name + "_discard"
            text += "static void %s(struct job *job)\n{\n%s}\n" % (discard, indented(
                mine + ["%s(self->%s);" % (self.handles[made][1], n) for n, made in news]))
        return text + (
            'static const struct job_kind %s_kind = {"%s", sizeof(struct %s_job), %s_run, %s, '
            "%s};\nstatic napi_value call_%s(struct call *call)\n{\n%s}\n" % (
                name, name, name, name, finish, discard, name, indented([
                    self.get(struct, handle),
                    "struct %s_job *self = job_create(call, &%s_kind, %s);" % (
                        name, name, handle + ", NULL" if struct == "wal_store" else
                        "NULL, " + handle),
                    "if (self == NULL) {", "    return NULL;", "}", *reads,
                    "return job_start(call, &self->job);"])))

    def call_list(self, name, cursor, _optional, _rest):
        item, (handle, struct, variables, reads, arguments, _) = self.cursor(cursor)
        values = {"@store": "%s->wal" % handle, "@object": "%s->object" % handle,
                  "@error": "call_error(call)"}
        return NEXT % (name, cursor) + (
            "static napi_value call_%s(struct call *call)\n{\n%s}\n" % (name, indented([
                self.get(struct, handle),
                *("%s = %s;" % (v, "NULL" if "*" in v else "{0}") for v in variables), *reads,
                "if (call->failed || !call_check(call, %s_open(%s))) {" % (
                    cursor, ", ".join(values.get(a, a) for a in arguments)),
                "    return NULL;", "}",
                "napi_value array = make_rows(call, &%s_out, %s_next, cursor, UINT32_MAX);" % (
                    item, name), "%s_close(cursor);" % cursor, "return array;"])))

    @staticmethod
    def call_names(name, function, _optional, _rest):
        return ("static napi_value call_%s(struct call *call)\n{\n"
                "    return make_names(call, %s);\n}\n" % (name, function))


class Python(Binding):
    FIELD, TABLE, PREFIX = "value_field", "value_table", "VALUE"
    KINDS = {**NUMBERS, "ns": "I64"}
    CONTENTS = ("payload", "content", "piece", "metadata", "meta", "value")
    HANDLES = {"wal_session": "SESSION", "wal_blob": "BLOB", "wal_view": "VIEW",
               "wal_blob_writer": "WRITER", "wal_import_follow": "FOLLOW"}
    READ = {"TEXT": "text", "PATH": "path", "CONTENT": "content", "U32": "u32", "U64": "u64",
            "I64": "i64", "I32": ""}
    READ_TEXT = 'value_%s(state, %s, "%s", %s)'
    # A variable, a function that reads it, an argument, a result.
    PARAMETERS = {
        "value": ("{type} {name};", "{read}", "{name}", ""),
        "const char *": ("const char *{name};", "system_path", "{name}", ""),
        "digest": ("uint8_t {name}{size};", "some_digest", "{name}", ""),
        "result": ("struct {struct} {name} = WAL_INIT({struct});", "", "&{name}",
                   "value_dict(&{struct}_out, &{name})"),
        "uint64_t *": ("uint64_t {name} = 0;", "", "&{name}",
                       "PyLong_FromUnsignedLongLong({name})"),
        "const char **": ("const char *{name} = 0;", "", "&{name}",
                          "value_str((struct wal_slice){{{name}, strlen({name})}})"),
        "uint8_t[": ("uint8_t {name}{size} = {{0}};", "", "{name}",
                     "value_hex({name}, sizeof({name}))"),
        "char[": ("char {name}{size} = {{0}};", "", "{name}", "PyUnicode_FromString({name})"),
        "new": ("struct {struct} *{name} = NULL;", "", "&{name}", "{struct}")}
    HEAD = ("static PyObject *call_%s(PyObject *module, PyObject *const *args, "
            "Py_ssize_t count)\n{\n")

    def __init__(self, spec, headers):
        super().__init__(spec, headers)
        self.handles.update((struct, (kind,)) for struct, kind in self.HANDLES.items())

    @staticmethod
    def name(member):
        return member

    def text(self):
        text = self.all_text(
            ['"bindings/python/src/core/interface.h"', "<string.h>",
             '"bindings/python/src/core/call.h"', '"bindings/python/src/core/module.h"'], [])
        return text + (
            "\nPyMethodDef interface_methods[] = {\n%s    {0},\n};\n"
            "\nconst struct constant constants[] = {\n%s    {NULL, 0},\n};\n" % (
                indented('MODULE_FUNCTION("%s", call_%s),' % (name, name)
                         for _, name, _, _ in self.calls),
                indented('{"%s", WAL_%s},' % (name, name) for name in self.constants)))

    def plan(self, function, rest=()):
        """How a function is called: (statement that begins a call of a handle, and
        the handle; variables, what reads the arguments, their number, arguments,
        [(name, result)], the options with progress)."""
        begin, progress, index = None, None, 0
        variables, reads, arguments, results = [], [], [], []
        for what, name, filled in self.parameters(function):
            value, detail = "args[%d]" % index, filled["struct"]
            if what == "handle":
                begin = ("struct %s *%s = call_begin(&call, module, args[0], HANDLE_%s);" % (
                    detail, name, "STORE" if detail == "wal_store" else
                    self.handles[detail][0]), name)
                arguments.append(name)
                index += 1
            elif what == "error":
                arguments.append("&call.error")
            elif filled["type"] == "int32_t":
                arguments.append(value + " == Py_True")
                index += 1
            elif what == "options":
                variables.append("struct %s %s = WAL_INIT(%s);" % (detail, name, detail))
                arguments.append("&" + name)
                table = detail + "_in"
                if "flat" in rest:
                    for field, kind, member, _, _ in self.tables[table][1]:
                        reads.append(self.READ_TEXT % (self.READ[kind], "args[%d]" % index, field,
                                                       "&%s.%s" % (name, member)))
                        index += 1
                elif table in self.tables:
                    reads.append('value_row(state, %s, "%s", &%s, &%s)' % (value, name, table,
                                                                           name))
                    index += 1
                if any(m[1] == "progress" for m in self.headers.structs[detail]):
                    progress = name
            else:
                variable, read, argument, result = (
                    text.format(**filled) for text in self.PARAMETERS[what])
                variables.append(variable)
                arguments.append(argument)
                results += [(name, result)] if result else []
                if read:
                    place = name if what == "digest" else "&" + name
                    reads.append(self.READ_TEXT % (read, value, name, place))
                    index += 1
        return begin, variables, reads, index, arguments, results, progress

    def head(self, name, begin, variables, reads, number):
        """A function up to the begin of its call."""
        checks = ['!value_count(module, "%s", count, %d)' % (name, number),
                  *("!" + read for read in reads)]
        return self.HEAD % name + indented([
            *variables,
            *(["struct module_state *state = module_state(module);"] if reads else []),
            "struct call call;", "if (%s) {" % " ||\n        ".join(checks), "    return NULL;",
            "}", *(["call_begin_free(&call, module);"] if begin is None else
                   [begin[0], "if (%s == NULL) {" % begin[1], "    return NULL;", "}"])])

    def call_call(self, name, function, is_optional, rest):
        begin, variables, reads, number, arguments, results, progress = self.plan(function, rest)
        type_ = self.headers.functions[function][0]
        called = "%s(%s)" % (function, ", ".join(arguments))
        if not type_.startswith("enum"):
            made = {"uint64_t": "PyLong_FromUnsignedLongLong(%s)",
                    "int32_t": "PyBool_FromLong(%s)"}.get(type_, "PyUnicode_FromString(%s)")
            text = self.head(name, begin, variables, reads, number) + indented([
                "PyObject *made = %s;" % made % called, "call_end(&call);", "return made;"]) + "}\n"
            return text if number else text.replace("{\n", "{\n    (void)args;\n", 1)
        name_, made = results[0] if results else ("", "")
        table = re.match(r"value_dict\(&(\w+)", made)
        # Text of the library holds until the next call on the handle.
        has_text = table and any(field[1] in ("TEXT", "PATH", "CONTENT", "OR_NULL")
                                 for field in self.tables[table[1]][1])
        if progress:
            variables.append("struct callback callback;")
        if has_text:
            variables.append("struct rows rows = {.table = &%s};" % table[1])
            made = "rows_first(&rows)"
        elif len(results) > 1:
            made = 'Py_BuildValue("%s", %s)' % ("N" * len(results),
                                                ", ".join(r for _, r in results))
        text = self.head(name, begin, variables, reads, number + bool(progress)) + indented([
            *(["if (!callback_begin(&callback, &call, args[%d])) {" % number,
               "    call_end(&call);", "    return NULL;", "}",
               "%s.progress = callback_progress;" % progress, "%s.ctx = &callback;" % progress]
              if progress else []),
            "call_unlock(&call);",
            *(["(void)pthread_mutex_lock(&call.handle->slices);"] if has_text else []),
            "call.status = %s;" % called,
            *(["if (call.status == WAL_OK && !rows_add(&rows, &%s)) {" % name_,
               "    call.status = WAL_ENOMEM;", "}",
               "(void)pthread_mutex_unlock(&call.handle->slices);"] if has_text else []),
            "call_lock(&call);",
            *(["if (call.status == WAL_ENOTFOUND) {", "    call_end(&call);",
               "    Py_RETURN_NONE;", "}"] if is_optional else [])])
        if not results:
            return text + "    return call_none(&call);\n}\n"
        if made in self.handles:
            return text + "    return call_handle(&call, HANDLE_%s, %s);\n}\n" % (
                self.handles[made][0], name_)
        return text + indented([
            "PyObject *made = call_failed(&call) ? NULL : %s;" % made,
            *(["callback_end(&callback);"] if progress else []),
            *(["rows_free(&rows);"] if has_text else []), "call_end(&call);",
            "return made;"]) + "}\n"

    def call_list(self, name, cursor, _optional, rest):
        item, (begin, variables, reads, number, arguments, _, _) = self.cursor(cursor, rest)
        variables.append("struct rows rows = {.table = &%s_out};" % item)
        return NEXT % (name, cursor) + self.head(
            name, begin, variables, reads, number) + indented([
                "call_unlock(&call);",
                "call.status = %s_open(%s);" % (cursor, ", ".join(arguments)),
                "if (call.status == WAL_OK) {",
                "    call.status = rows_fill(&rows, %s_next, cursor, SIZE_MAX, &call.error);" %
                name, "}", "%s_close(cursor);" % cursor, "call_lock(&call);",
                "PyObject *made = call_failed(&call) ? NULL : rows_list(&rows);",
                "rows_free(&rows);", "call_end(&call);", "return made;"]) + "}\n"

    def call_names(self, name, function, _optional, _rest):
        return self.HEAD % name + indented([
            "(void)args;", 'if (!value_count(module, "%s", count, 0)) {' % name,
            "    return NULL;", "}", "return value_names(%s);" % function]) + "}\n"


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("node", "python"):
        print(__doc__, file=sys.stderr)
        return 2
    binding = {"node": Node, "python": Python}[sys.argv[1]](sys.argv[2], Headers())
    with open(sys.argv[3], "w", encoding="utf-8") as file:
        file.write("/* Made by bindings/generate.py. */\n" + binding.text())
    return 0


sys.exit(main())
