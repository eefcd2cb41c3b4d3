#!/usr/bin/env python3
"""Makes C of a binding from the public headers and a list of what it has.

  generate.py node|python SPEC OUTPUT

SPEC is interface.txt of the binding. Each line is one of these; a line that
begins with spaces continues the one before.

  handle STRUCT NAME CLOSE [shared] [WORDS]
      A kind of handles (Node.js): NAME_type, named WORDS in messages.
  in STRUCT MEMBER...
      The table STRUCT_in: members that a caller sets, in the order of the
      arguments.
  out [TABLE] STRUCT [only] FIELD...
      The table STRUCT_out, or TABLE_out: members that a caller gets. These are
      all but flags (Node.js) and what has no value in the language, with the
      exceptions that the fields name; with `only`, those that the fields name.
      They are in the order of the struct, with bits of flags last; fields that
      are named before `...` are the first, and those after it the last.
        MEMBER?           null when it is empty; MEMBER?undefined
        -MEMBER           left out
        NAME=MEMBER       under another name
        NAME=MEMBER&MASK  whether bits of flags are set
        MEMBER:A,B,...    one of these names
        MEMBER:code       the name of a status; MEMBER:bool
  now NAME FUNCTION       a function that calls the library at once
  now? NAME FUNCTION      likewise; WAL_ENOTFOUND is null
  job NAME FUNCTION       a function that calls it in another thread
  list NAME CURSOR        a function for all that a cursor returns
  names NAME FUNCTION     a function for the names of all indexes
  call NAME FUNCTION [flat]
      Python: a function that calls the library without the interpreter's lock.
      flat: the fields of options are arguments, in place of one row of them.
  call? NAME FUNCTION     likewise; WAL_ENOTFOUND is None
  constants NAME...       Python: constants of the module, without WAL_

The arguments of a function are those of the library's: handles and values, the
fields of options, a watch (Python: a function) where the options have progress. What the library
returns by pointers is the result: one value, or an object of them.
"""
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PATHS = ("path", "root", "directory", "exclude")
NUMBERS = {"uint32_t": "U32", "uint64_t": "U64", "int32_t": "I32",
           "int64_t": "I64", "double": "DOUBLE"}
HANDLES = {"wal_session": "SESSION", "wal_blob": "BLOB", "wal_view": "VIEW",
           "wal_blob_writer": "WRITER", "wal_import_follow": "FOLLOW"}


class Headers:
    """The structs and functions of the public headers."""

    def __init__(self):
        self.names, self.structs, self.functions = [], {}, {}
        for folder in ("engine", "convert", "search"):
            top = os.path.join(ROOT, folder, "include")
            for path in sorted(glob.glob(os.path.join(top, "**/*.h"),
                                         recursive=True)):
                self.names.append(os.path.relpath(path, top))
                with open(path, encoding="utf-8") as file:
                    self.read(file.read())

    def read(self, text):
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        text = re.sub(r"^#.*(\\\n.*)*", "", text, flags=re.M)
        for name, body in re.findall(r"^struct (wal_\w+) \{(.*?)^\};", text,
                                     re.S | re.M):
            self.structs[name] = [
                re.fullmatch(r"(.*?) ?(\w+)(?:\[(\w+)\])?",
                             " ".join(line.split())).groups()
                for line in body.split(";") if line.strip()]
        for result, name, parameters in re.findall(
                r"WAL_API (?:WAL_MUST_USE )?([\w\s*]+?)\s*\b(wal_\w+)"
                r"\(([^;]*?)\);", text):
            self.functions[name] = (result, [
                re.fullmatch(r"(.*?) ?(\w+)(\[\w+\])?",
                             " ".join(parameter.split())).groups()
                for parameter in parameters.split(",")
                if parameter.strip() != "void"])


class Binding:
    """What is common: the spec, and the tables."""

    def kind_of(self, type_, name, size):
        """The kind of a member without what the spec says, or None."""
        if "reserved" in name or name == "struct_size":
            return None
        if type_ == "struct wal_slice":
            return ("PATH" if name in PATHS else
                    "CONTENT" if name in self.CONTENTS else "TEXT")
        if type_ == "uint8_t" and size:
            return "UUID" if size == "16" else "DIGEST"
        if type_ == "char" and size:
            return "CHARS"
        return None if size else self.KINDS.get(
            "ns" if name.endswith("_ns") else type_)

    def __init__(self, spec, headers):
        self.headers = headers
        self.tables = {}  # name: (struct, [(name, kind, member, mask, names)])
        self.handles = {}  # struct: (name, close, is shared, words)
        self.calls = []  # (how, name, function, modifiers)
        self.constants = []
        with open(spec, encoding="utf-8") as file:
            text = re.sub(r"#.*", "", file.read())
        for line in re.sub(r"\n[ \t]+", " ", text).splitlines():
            words = line.split()
            if words:
                self.read(*words)

    def read(self, what, *words):
        if what == "handle":
            shared = words[3:4] == ("shared",)
            self.handles[words[0]] = (
                words[1], words[2], shared,
                " ".join(words[3 + shared:]) or words[1])
        elif what == "in":
            types = {m[1]: m for m in self.headers.structs[words[0]]}
            named = [word.rpartition("=") for word in words[1:]]
            self.tables[words[0] + "_in"] = (words[0], [
                (name or self.name(member), self.kind_of(*types[member]), member,
                 "0", None) for name, _, member in named])
        elif what == "out":
            table = words[0]
            words = words[1:] if words[1:2] and words[1] in self.headers.structs \
                else words
            self.tables[table + "_out"] = (words[0], self.fields(*words))
        elif what == "constants":
            self.constants += words
        else:
            self.calls.append((what, words[0], words[1], words[2:]))

    def fields(self, struct, *words):
        members = {m[1]: m for m in self.headers.structs[struct]}
        left_out = set(self.LEFT_OUT)
        left_out.update(word[1:] for word in words if word.startswith("-"))
        first, last = {}, {}  # by what they read
        for word in words:
            match = re.fullmatch(r"(?:(\w+)=)?(\w+)(?:&(\w+)|\?(\w*)|:([\w,]+))?",
                                 word)
            if word in ("...", "only") or match is None:
                continue
            name, member, mask, empty, value = match.groups()
            kind = self.kind_of(*members[member])
            names = None
            if mask:
                kind = "FLAG"
            elif empty is not None:
                kind = {"TEXT": "OR_NONE" if empty else "OR_NULL",
                        "CHARS": "ID", "DIGEST": "NO_DIGEST"}[kind]
            elif value in ("code", "bool"):
                kind = value.upper()
            elif value:
                kind, names = "NAME", value.split(",")
            in_front = "..." in words[words.index(word):]
            (first if in_front else last)[member, mask] = (
                name or self.name(member), kind, member, mask or "0", names)
        rest = []
        for member, value in members.items():
            if (member, None) in first or member in left_out:
                continue
            if "..." not in words and (member, None) in last:
                rest.append(last.pop((member, None)))
            elif (member, None) not in last and "only" not in words and \
                    self.kind_of(*value):
                rest.append((self.name(member), self.kind_of(*value), member, "0",
                             None))
        return [*first.values(), *rest, *last.values()]

    def table_text(self, name):
        struct, fields = self.tables[name]
        lines = [self.field_text(struct, *field) for field in fields]
        return ("static const struct %s %s_fields[] = {\n%s};\n"
                "const struct %s %s = {%s_fields, %d, sizeof(struct %s)};\n" % (
                    self.FIELD, name, "".join(lines), self.TABLE, name, name,
                    len(fields), struct))

    def parameters(self, function):
        """(what, name, detail) of each parameter."""
        for type_, name, size in self.headers.functions[function][1]:
            base = type_.replace("const ", "").replace("struct ", "")
            struct = base.rstrip(" *")
            if struct == "wal_error":
                yield "error", name, None
            elif base.endswith("**") and struct in self.handles:
                yield "new", name, struct
            elif struct == "wal_store" or struct in self.handles:
                yield "handle", name, struct
            elif type_ == "struct wal_slice" or (
                    type_ in NUMBERS and not size):
                yield "value", name, (type_, self.kind_of(type_, name, size))
            elif type_ == "const char *":
                yield "system path", name, None
            elif size:
                yield ("digest" if type_.startswith("const") else "array", name,
                       (type_, size))
            elif type_ in ("uint64_t *", "const char **"):
                yield "pointed", name, type_.rstrip("*").strip()
            elif type_.startswith("const"):
                yield "options", name, struct
            else:
                yield "result", name, struct


class Node(Binding):
    FIELD, TABLE, LEFT_OUT = "field", "table", ("flags",)
    KINDS = {**NUMBERS, "ns": "MS", "const struct wal_error *": "ERROR"}
    CONTENTS = ("payload", "content", "piece")
    READ = {"TEXT": "value_text", "PATH": "value_path_slice",
            "CONTENT": "value_bytes", "U32": "value_u32", "U64": "value_u64",
            "I64": "value_i64", "I32": "value_bool"}

    @staticmethod
    def name(member):
        member = re.sub(r"_(ms|ns)$", "", member)
        return re.sub(r"_(\w)", lambda m: m[1].upper(), member)

    @staticmethod
    def field_text(struct, name, kind, member, mask, names):
        listed = "NULL"
        if names:
            mask = str(len(names))
            listed = "(const char *const[]){%s}" % ", ".join(
                '"%s"' % item for item in names)
        return ('    {"%s", FIELD_%s, offsetof(struct %s, %s), '
                'sizeof(((struct %s *)0)->%s), %s, %s},\n' % (
                    name, kind, struct, member, struct, member, mask, listed))

    def text(self):
        parts = ['#include "bindings/node/native/interface.h"\n',
                 '#include <string.h>\n',
                 '#include "bindings/node/native/base/value.h"\n',
                 '#include "bindings/node/native/modules.h"\n',
                 '#include "bindings/node/native/store/job.h"\n',
                 '#include "bindings/node/native/store/store.h"\n',
                 *("#include <%s>\n" % name for name in self.headers.names)]
        parts += map(self.table_text, self.tables)
        for name, close, shared, words in self.handles.values():
            parts.append(
                "static void close_%s(void *object)\n{\n    %s(object);\n}\n"
                'const struct handle_type %s_type = {"%s", close_%s, %s};\n' %
                (name, close, name, words, name, str(shared).lower()))
        parts += [getattr(self, "call_" + how.rstrip("?"))(
            name, function, how.endswith("?"))
                  for how, name, function, _ in self.calls]
        parts.append("const struct call_method interface_methods[] = {\n" + "".join(
            '    {"%s", call_%s},\n' % (name, name)
            for _, name, _, _ in self.calls) + "    {NULL, NULL},\n};\n")
        return "\n".join(parts)

    def plan(self, function, owner=""):
        """How a function is called: (handle, its struct, members or variables,
        statements that read the arguments, arguments, [(name, result)])."""
        handle = struct = None
        variables, reads, arguments, results = [], [], [], []
        parameters = list(self.parameters(function))
        structs = [d for w, _, d in parameters if w == "handle"]
        index = 1 if structs else 0
        watch = []
        for what, name, detail in parameters:
            place = owner + name
            if what == "error":
                arguments.append("@error")
            elif what == "handle":
                if detail != "wal_store" or len(structs) == 1:
                    handle, struct = name, detail
                arguments.append("@" + ("store" if detail == "wal_store" else
                                        "object"))
            elif what == "value":
                type_, kind = detail
                variables.append("%s %s" % (type_, name))
                reads.append("%s = %s(call, call_arg(call, %d));" % (
                    place, self.READ[kind], index))
                arguments.append(place)
                index += 1
            elif what == "system path":
                variables.append("const char *" + name)
                reads.append("%s = value_path(call, call_arg(call, %d));" % (
                    place, index))
                arguments.append(place)
                index += 1
            elif what == "digest":
                variables.append("uint8_t %s%s" % (name, detail[1]))
                reads.append("value_digest(call, call_arg(call, %d), %s);" % (
                    index, place))
                arguments.append(place)
                index += 1
            elif what == "options":
                table = detail + "_in"
                variables.append("struct %s %s" % (detail, name))
                if table in self.tables:
                    reads.append("read_struct(call, %d, &%s, &%s);" % (
                        index, table, place))
                    index += len(self.tables[table][1])
                else:
                    reads.append("%s.struct_size = sizeof(%s);" % (place, place))
                arguments.append("&" + place)
                if any(m[1] == "progress" for m in self.headers.structs[detail]):
                    watch = ["%s.progress = job_progress;" % place,
                             "%s.ctx = &self->job;" % place]
            elif what == "result":
                variables.append("struct %s %s" % (detail, name))
                reads.append("%s.struct_size = sizeof(%s);" % (place, place))
                arguments.append("&" + place)
                results.append((name, "make_struct(call, &%s_out, &%s)" % (
                    detail, place)))
            elif what == "pointed":
                variables.append("%s%s%s" % (
                    detail, " *" if detail.endswith("char") else " ", name))
                arguments.append("&" + place)
                results.append((name, "make_%s(call, %s)" % (
                    "number" if detail == "uint64_t" else "string", place)))
            elif what == "array":
                variables.append("%s %s%s" % (detail[0], name, detail[1]))
                arguments.append(place)
                results.append((name, "make_digest(call, %s)" % place
                                if detail[0] == "uint8_t" else
                                "make_optional(call, (struct wal_slice){%s, "
                                "strlen(%s)})" % (place, place)))
            elif what == "new":
                variables.append("struct %s *%s" % (detail, name))
                arguments.append("&" + place)
                results.append((name, detail))
        if watch:
            reads += watch + ["job_watch_arg(call, &self->job, "
                              "call_arg(call, %d));" % index]
        return handle, struct, variables, reads, arguments, results

    def get(self, struct, name):
        """The statement that gets the handle of the first argument."""
        if struct == "wal_store":
            return "struct store *%s = store_get(call, 0);" % name
        return "struct handle *%s = handle_get(call, 0, &%s_type);" % (
            name, self.handles[struct][0])

    @staticmethod
    def object_text(results):
        """Statements that return what the results are."""
        if not results:
            return "    return make_undefined(call);\n"
        if len(results) == 1:
            return "    return %s;\n" % results[0][1]
        return "    napi_value object = make_object(call);\n" + "".join(
            '    object_set(call, object, "%s", %s);\n' % result
            for result in results) + "    return object;\n"

    def call_now(self, name, function, is_optional):
        result_type = self.headers.functions[function][0]
        handle, struct, variables, reads, arguments, results = self.plan(function)
        head = "static napi_value call_%s(struct call *call)\n{\n" % name
        if result_type == "void":
            return head + (
                "    struct handle *handle = handle_find(call, 0, &%s_type);\n"
                "    if (handle != NULL) {\n        handle_close(handle);\n    }\n"
                "    return make_undefined(call);\n}\n" % self.handles[struct][0])
        if handle:
            head += "    %s\n" % self.get(struct, handle)
        store = handle if struct == "wal_store" else "%s->store" % handle
        text = head + "".join(
            "    %s%s;\n" % (v, " = {0}" if v.startswith("struct wal_") and
                             "*" not in v else " = {0}" if "[" in v else " = 0")
            for v in variables)
        text += "".join("    %s\n" % read for read in reads)
        values = {"@store": store + "->wal", "@object": "%s->object" % handle,
                  "@error": "call_error(call)"}
        called = "%s(%s)" % (function, ", ".join(
            values.get(a, a) for a in arguments))
        text += "    if (call->failed) {\n        return NULL;\n    }\n"
        if not result_type.startswith("enum"):
            return text + "    return make_%s(call, %s%s);\n}\n" % (
                {"uint64_t": "number", "int32_t": "bool"}.get(result_type,
                                                              "string"),
                called, " != 0" if result_type == "int32_t" else "")
        text += "    enum wal_status status = %s;\n" % called
        if is_optional:
            text += ("    if (status == WAL_ENOTFOUND) {\n"
                     "        return make_null(call);\n    }\n")
        text += ("    if (!call_check(call, status)) {\n"
                 "        return NULL;\n    }\n")
        results = [(n, "handle_make(call, &%s_type, %s, %s)" % (
            self.handles[r][0], store, n) if r in self.handles else r)
                   for n, r in results]
        return text + self.object_text(results) + "}\n"

    def call_job(self, name, function, _):
        handle, struct, variables, reads, arguments, results = self.plan(
            function, "self->")
        news = [(n, r) for n, r in results if r in self.handles]
        values = {"@store": "job->store->wal", "@object": "job->handle->object",
                  "@error": "error"}
        mine = "    struct %s_job *self = (struct %s_job *)job;\n" % (name, name)
        text = "struct %s_job {\n    struct job job;\n%s};\n" % (
            name, "".join("    %s;\n" % v for v in variables))
        text += ("static enum wal_status %s_run(struct job *job, "
                 "struct wal_error *error)\n{\n%s    return %s(%s);\n}\n" % (
                     name, mine if variables else "", function, ", ".join(
                         values.get(a, a) for a in arguments)))
        finish = discard = "NULL"
        if results:
            finish = name + "_finish"
            text += ("static napi_value %s(struct call *call, struct job *job)\n"
                     "{\n%s" % (finish, mine))
            for n, r in news:
                text += ("    struct %s *%s = self->%s;\n    self->%s = NULL;\n" %
                         (r, n, n, n))
            text += self.object_text([
                (n, "handle_make(call, &%s_type, job->store, %s)" % (
                    self.handles[r][0], n) if r in self.handles else r)
                for n, r in results]) + "}\n"
        if news:
            discard = name + "_discard"
            text += "static void %s(struct job *job)\n{\n%s%s}\n" % (
                discard, mine, "".join("    %s(self->%s);\n" % (
                    self.handles[r][1], n) for n, r in news))
        text += ('static const struct job_kind %s_kind = {"%s", '
                 "sizeof(struct %s_job), %s_run, %s, %s};\n" % (
                     name, name, name, name, finish, discard))
        return text + (
            "static napi_value call_%s(struct call *call)\n{\n    %s\n"
            "    struct %s_job *self = job_create(call, &%s_kind, %s);\n"
            "    if (self == NULL) {\n        return NULL;\n    }\n%s"
            "    return job_start(call, &self->job);\n}\n" % (
                name, self.get(struct, handle), name, name,
                handle + ", NULL" if struct == "wal_store" else "NULL, " + handle,
                "".join("    %s\n" % read for read in reads)))

    def call_list(self, name, cursor, _):
        item = self.headers.functions[cursor + "_next"][1][1]
        struct = item[0].replace("struct ", "").rstrip(" *")
        self.handles[cursor] = ("", "", False, "")
        handle, owner, variables, reads, arguments, _ = self.plan(
            cursor + "_open")
        del self.handles[cursor]
        values = {"@store": "%s->wal" % handle, "@object": "%s->object" % handle,
                  "@error": "call_error(call)"}
        return (
            "static enum wal_status %s_next(void *cursor, void *item, "
            "struct wal_error *error)\n{\n    return %s_next(cursor, item, "
            "error);\n}\n"
            "static napi_value call_%s(struct call *call)\n{\n    %s\n%s%s"
            "    if (call->failed || !call_check(call, %s_open(%s))) {\n"
            "        return NULL;\n    }\n"
            "    napi_value array = make_rows(call, &%s_out, %s_next, cursor, "
            "UINT32_MAX);\n    %s_close(cursor);\n    return array;\n}\n" % (
                name, cursor, name, self.get(owner, handle),
                "".join("    %s = %s;\n" % (v, "NULL" if "*" in v else "{0}")
                        for v in variables),
                "".join("    %s\n" % read for read in reads), cursor,
                ", ".join(values.get(a, a) for a in arguments), struct, name,
                cursor))

    @staticmethod
    def call_names(name, function, _):
        return ("static napi_value call_%s(struct call *call)\n{\n"
                "    return make_names(call, %s);\n}\n" % (name, function))


class Python(Binding):
    FIELD, TABLE, LEFT_OUT = "value_field", "value_table", ()
    KINDS = {**NUMBERS, "ns": "I64"}
    CONTENTS = ("payload", "content", "piece", "metadata", "meta", "value")
    READ = {"TEXT": "text", "PATH": "path", "CONTENT": "content", "U32": "u32",
            "U64": "u64", "I64": "i64"}
    HEAD = ("static PyObject *call_%s(PyObject *module, PyObject *const *args, "
            "Py_ssize_t count)\n{\n")

    def __init__(self, spec, headers):
        super().__init__(spec, headers)
        self.handles.update((struct, (kind,)) for struct, kind in HANDLES.items())

    @staticmethod
    def name(member):
        return member

    @staticmethod
    def field_text(struct, name, kind, member, _mask, _names):
        return ('    {"%s", VALUE_%s, offsetof(struct %s, %s), '
                'sizeof(((struct %s *)0)->%s)},\n' % (
                    name, kind, struct, member, struct, member))

    def text(self):
        parts = ['#include "bindings/python/src/core/interface.h"\n',
                 '#include <string.h>\n',
                 '#include "bindings/python/src/core/callback.h"\n',
                 '#include "bindings/python/src/core/raise.h"\n',
                 '#include "bindings/python/src/core/rows.h"\n',
                 *("#include <%s>\n" % name for name in self.headers.names)]
        parts += map(self.table_text, self.tables)
        parts += [getattr(self, "call_" + how.rstrip("?"))(
            name, function, how.endswith("?"), modifiers)
                  for how, name, function, modifiers in self.calls]
        parts.append("PyMethodDef interface_methods[] = {\n" + "".join(
            '    MODULE_FUNCTION("%s", call_%s),\n' % (name, name)
            for _, name, _, _ in self.calls) + "    {0},\n};\n")
        parts.append("const struct constant constants[] = {\n" + "".join(
            '    {"%s", WAL_%s},\n' % (name, name)
            for name in self.constants) + "    {NULL, 0},\n};\n")
        return "\n".join(parts)

    def plan(self, function, modifiers=()):
        """(begin of a handle, declarations, readers, number of arguments,
        arguments, [(name, result)], whether it has progress)."""
        begin, progress, index = None, None, 0
        declared, reads, arguments, results = [], [], [], []
        for what, name, detail in self.parameters(function):
            argument = "args[%d]" % index
            if what == "handle":
                begin = "struct %s *%s = call_begin(&call, module, args[0], HANDLE_%s);" % (
                    detail, name, "STORE" if detail == "wal_store" else
                    self.handles[detail][0]), name
                arguments.append(name)
                index += 1
            elif what == "error":
                arguments.append("&call.error")
            elif what == "value" and detail[0] == "int32_t":
                arguments.append("%s == Py_True" % argument)
                index += 1
            elif what == "value":
                declared.append("%s %s;" % (detail[0], name))
                reads.append('value_%s(state, %s, "%s", &%s)' % (
                    self.READ[detail[1]], argument, name, name))
                arguments.append(name)
                index += 1
            elif what == "system path":
                declared.append("const char *%s;" % name)
                reads.append('value_system_path(state, %s, "%s", &%s)' % (
                    argument, name, name))
                arguments.append(name)
                index += 1
            elif what == "digest":
                declared.append("uint8_t %s%s;" % (name, detail[1]))
                reads.append('value_some_digest(state, %s, "%s", %s)' % (
                    argument, name, name))
                arguments.append(name)
                index += 1
            elif what == "options":
                declared.append("struct %s %s = WAL_INIT(%s);" % (
                    detail, name, detail))
                arguments.append("&" + name)
                table = detail + "_in"
                if "flat" in modifiers:
                    for field, kind, member, _, _ in self.tables[table][1]:
                        reads.append('value_%s(state, args[%d], "%s", &%s.%s)' % (
                            self.READ[kind], index, field, name, member))
                        index += 1
                elif table in self.tables:
                    reads.append('value_row(state, %s, "%s", &%s, &%s)' % (
                        argument, name, table, name))
                    index += 1
                if any(m[1] == "progress" for m in self.headers.structs[detail]):
                    progress = name
            elif what == "result":
                declared.append("struct %s %s = WAL_INIT(%s);" % (
                    detail, name, detail))
                arguments.append("&" + name)
                results.append((name, "value_dict(&%s_out, &%s)" % (detail, name)))
            elif what == "pointed":
                declared.append("%s%s = 0;" % (
                    detail + (" *" if detail.endswith("char") else " "), name))
                arguments.append("&" + name)
                results.append((name, (
                    "PyLong_FromUnsignedLongLong(%s)" if detail == "uint64_t" else
                    "value_str((struct wal_slice){%s, strlen(%s)})").replace(
                        "%s", name)))
            elif what == "array":
                declared.append("%s %s%s = {0};" % (detail[0], name, detail[1]))
                arguments.append(name)
                results.append((name, (
                    "value_hex(%s, sizeof(%s))" if detail[0] == "uint8_t" else
                    "PyUnicode_FromString(%s)").replace("%s", name)))
            elif what == "new":
                declared.append("struct %s *%s = NULL;" % (detail, name))
                arguments.append("&" + name)
                results.append((name, detail))
        return begin, declared, reads, index, arguments, results, progress

    def head(self, name, begin, declared, reads, number):
        """A function up to the begin of its call."""
        text = self.HEAD % name + "".join("    %s\n" % d for d in declared)
        if reads:
            text += "    struct module_state *state = module_state(module);\n"
        text += "    struct call call;\n    if (%s) {\n        return NULL;\n    }\n" % (
            " ||\n        !".join(['!value_count(module, "%s", count, %d)' % (
                name, number), *reads]))
        if begin is None:
            return text + "    call_begin_free(&call, module);\n"
        return text + ("    %s\n    if (%s == NULL) {\n        return NULL;\n    }\n"
                       % begin)

    def call_call(self, name, function, is_optional, modifiers):
        begin, declared, reads, number, arguments, results, progress = self.plan(
            function, modifiers)
        returned = self.headers.functions[function][0]
        called = "%s(%s)" % (function, ", ".join(arguments))
        if not returned.startswith("enum"):
            made = {"uint64_t": "PyLong_FromUnsignedLongLong(%s)",
                    "int32_t": "PyBool_FromLong(%s)"}.get(
                        returned, "PyUnicode_FromString(%s)")
            text = self.head(name, begin, declared, reads, number) + (
                "    PyObject *made = %s;\n    call_end(&call);\n"
                "    return made;\n}\n" % made % called)
            return text if number else text.replace(
                "{\n", "{\n    (void)args;\n", 1)
        table = re.match(r"value_dict\(&(\w+)", results[0][1] if results else "")
        # Text of the library holds until the next call on the handle.
        lists = table and any(field[1] in ("TEXT", "PATH", "CONTENT")
                              for field in self.tables[table[1]][1])
        if progress:
            declared.append("struct callback callback;")
        if lists:
            declared.append("struct rows rows = {.table = &%s};" % table[1])
        text = self.head(name, begin, declared, reads, number + bool(progress))
        if progress:
            text += ("    if (!callback_begin(&callback, &call, args[%d])) {\n"
                     "        call_end(&call);\n        return NULL;\n    }\n"
                     "    %s.progress = callback_progress;\n"
                     "    %s.ctx = &callback;\n" % (number, progress, progress))
        text += "    call_unlock(&call);\n"
        if lists:
            text += ("    (void)pthread_mutex_lock(&call.handle->slices);\n"
                     "    call.status = %s;\n"
                     "    if (call.status == WAL_OK && !rows_add(&rows, &%s)) {\n"
                     "        call.status = WAL_ENOMEM;\n    }\n"
                     "    (void)pthread_mutex_unlock(&call.handle->slices);\n" % (
                         called, results[0][0]))
        else:
            text += "    call.status = %s;\n" % called
        text += "    call_lock(&call);\n"
        if is_optional:
            text += ("    if (call.status == WAL_ENOTFOUND) {\n"
                     "        call_end(&call);\n        Py_RETURN_NONE;\n    }\n")
        if not results:
            return text + "    return call_none(&call);\n}\n"
        if results[0][1] in self.handles:
            return text + "    return call_handle(&call, HANDLE_%s, %s);\n}\n" % (
                self.handles[results[0][1]][0], results[0][0])
        made = "rows_first(&rows)" if lists else results[0][1]
        if len(results) > 1:
            made = 'Py_BuildValue("%s", %s)' % (
                "N" * len(results), ", ".join(r for _, r in results))
        text += "    PyObject *made = call_failed(&call) ? NULL : %s;\n" % made
        return text + "".join("    %s;\n" % end for end in (
            *(["callback_end(&callback)"] if progress else []),
            *(["rows_free(&rows)"] if lists else []), "call_end(&call)",
            "return made")) + "}\n"

    def call_list(self, name, cursor, _, modifiers):
        item = self.headers.functions[cursor + "_next"][1][1]
        struct = item[0].replace("struct ", "").rstrip(" *")
        self.handles[cursor] = ("",)
        begin, declared, reads, number, arguments, _, _ = self.plan(
            cursor + "_open", modifiers)
        del self.handles[cursor]
        declared.append("struct rows rows = {.table = &%s_out};" % struct)
        return (
            "static enum wal_status %s_next(void *cursor, void *item, "
            "struct wal_error *error)\n{\n    return %s_next(cursor, item, "
            "error);\n}\n%s    call_unlock(&call);\n"
            "    call.status = %s_open(%s);\n"
            "    if (call.status == WAL_OK) {\n        call.status = "
            "rows_fill(&rows, %s_next, cursor, SIZE_MAX, &call.error);\n    }\n"
            "    %s_close(cursor);\n    call_lock(&call);\n"
            "    PyObject *made = call_failed(&call) ? NULL : rows_list(&rows);\n"
            "    rows_free(&rows);\n    call_end(&call);\n    return made;\n}\n" % (
                name, cursor, self.head(name, begin, declared, reads, number),
                cursor, ", ".join(arguments), name, cursor))

    def call_names(self, name, function, _optional, _modifiers):
        return self.HEAD % name + (
            '    (void)args;\n    if (!value_count(module, "%s", count, 0)) {\n'
            "        return NULL;\n    }\n    return value_names(%s);\n}\n" % (
                name, function))


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("node", "python"):
        print(__doc__, file=sys.stderr)
        return 2
    binding = {"node": Node, "python": Python}[sys.argv[1]](sys.argv[2], Headers())
    with open(sys.argv[3], "w", encoding="utf-8") as file:
        file.write("/* Made by bindings/generate.py. */\n" + binding.text())
    return 0


sys.exit(main())
