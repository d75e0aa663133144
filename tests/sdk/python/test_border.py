"""Run by `it/install/languages.rs`: `python3 -m unittest discover tests/sdk/python`."""

import dataclasses
import importlib.util
import io
import os
import sys
import tempfile
import types
import typing
import unittest
from pathlib import Path
from unittest import mock

import contract
from contract import Content, Content_Link, Content_None, Content_Text, Effect, Error, Link, Output

SDK = Path(__file__).resolve().parents[3] / "sdk/python/hermes_plugin"


class Err(Exception):
    def __init__(self, value):
        super().__init__(value)
        self.value = value


def loaded(name):
    """A module of the SDK without the package, whose other modules need the generated bindings."""
    spec = importlib.util.spec_from_file_location(f"hermes_plugin.{name}", SDK / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


sys.modules["componentize_py_types"] = types.SimpleNamespace(Err=Err)
package = types.ModuleType("hermes_plugin")
package.__path__ = []
sys.modules["hermes_plugin"] = package
border, crash, records = loaded("border"), loaded("crash"), loaded("records")


def output(**given):
    return records.record(Output, **{"effect": Effect.READS, **given})


class Shapes(unittest.TestCase):
    def refused(self, of, value, *parts):
        with self.assertRaises(border.Misfit) as raised:
            border.checked(of, value, "`f`")
        for part in parts:
            self.assertIn(part, str(raised.exception))

    def test_what_fits_passes(self):
        whole = output(content=[Content_Text("a"), Content_Link(Link("u", None)), Content_None()], structured="{}", share=1, extra=[["k", "v"]])
        found = border.checked(Output, whole, "`f`")
        self.assertEqual(dataclasses.replace(found, extra=[["k", "v"]]), whole)
        self.assertEqual((found.extra, found.share), ([("k", "v")], 1.0))
        self.assertIs(type(found.share), float)

    def test_every_field_of_a_record_has_its_type(self):
        class Other:
            pass

        for field in dataclasses.fields(Output):
            self.refused(Output, output(**{field.name: Other()}), f"`{field.name}`", "of the record Output", "not an Other")

    def test_what_stands_in_place_of_a_record_is_named(self):
        self.refused(Output, None, "the answer must be an Output, not None; is a `return` missing?")
        self.refused(Output, {"content": []}, "must be an Output, not a dict; write `record(Output, …)`")
        self.refused(Output, Output, "not the class Output; write `Output(…)`")
        self.refused(typing.List[Output], (each for each in []), "must be a list, not a generator; write `list(…)`")
        self.refused(typing.List[Output], "text", "must be a list, not 'text'")
        self.refused(Output, output(content=["tea"]), "`content[0]`", "one of Content_Text(…), Content_Link(…), Content_None(), not 'tea'", "write `Content_Text(…)`")
        self.refused(Output, output(content=[Content_None]), "`content[0]`", "the class Content_None; write `Content_None(…)`")
        self.refused(Output, output(content=[Content_Link(Link(5, None))]), "`content[0].uri` of the record Link must be a text, not 5")
        self.refused(Output, output(effect="reads"), "one of Effect.READS, Effect.WRITES, not 'reads'; did you mean `READS`?")
        self.refused(Output, output(size=2**64), "at most 64 bits")
        self.refused(Output, output(size=1.5), "a whole number, not 1.5")
        self.refused(Output, output(data="text"), "bytes, not 'text'; write `.encode()` behind it")
        self.refused(Output, output(extra=[("key",)]), "`extra[0]` of the record Output must be a tuple of 2")

    def test_a_field_that_does_not_exist_is_named_with_the_one_that_was_meant(self):
        with self.assertRaisesRegex(border.Misfit, "the record Output has no field `contents`; did you mean `content`?"):
            output(contents=[])
        odd = output()
        odd.structurd = "{}"
        self.refused(Output, odd, "no field `structurd`; did you mean `structured`?")
        with self.assertRaisesRegex(border.Misfit, "the record Output needs a value for `effect`"):
            records.record(Output)

    def test_halves_of_characters_become_the_sign_for_them(self):
        found = border.checked(Output, output(structured="a\ud83e b", content=[Content_Text("\udd80")]), "`f`")
        self.assertEqual((found.structured, found.content[0].value), ("a\ufffd b", "\ufffd"))
        self.assertEqual(border.checked(str, "🦀", "`f`"), "🦀")

    def test_long_vectors_pass_as_they_are(self):
        vectors = [[0.5] * 4]
        self.assertIs(border.checked(typing.List[typing.List[float]], vectors, "`f`")[0], vectors[0])
        self.refused(typing.List[typing.List[float]], [[0.5, "x"]], "`[0][1]` must be a number, not 'x'")


class Guards(unittest.TestCase):
    def guarded(self, function, returns=str):
        return border.guard("Tools.call", function, {"return": returns}, " (src/plugin.py:5)")

    def test_a_coroutine_that_does_not_wait_is_its_result(self):
        async def inner():
            return "tea"

        async def outer():
            return await inner()

        self.assertEqual(self.guarded(outer)(), "tea")

    def test_a_coroutine_that_waits_and_a_generator_are_refused(self):
        class Forever:
            def __await__(self):
                yield self

        async def waits():
            await Forever()

        def generates():
            yield "tea"

        for function, part in [(waits, "no event loop"), (generates, "is a generator"), (lambda: Forever(), "no event loop")]:
            for returns in (str, type(None)):
                with self.assertRaisesRegex(border.Misfit, part) as raised:
                    self.guarded(function, returns)()
                self.assertIn("`Tools.call` (src/plugin.py:5)", str(raised.exception))

    def test_errors_of_the_contract_pass_and_others_are_refused(self):
        def raises(value):
            raise Err(value)

        with self.assertRaises(Err) as raised:
            self.guarded(lambda: raises(Error("c", "half \ud83e")))()
        self.assertEqual(raised.exception.value.message, "half \ufffd")
        for value, part in [("text", "raised `Err` with 'text'"), (Error("c", None), "`message` of the record Error must be a text")]:
            with self.assertRaisesRegex(border.Misfit, part):
                self.guarded(lambda: raises(value))()

    def test_exit_is_refused(self):
        with self.assertRaisesRegex(border.Misfit, "called `exit`"):
            self.guarded(sys.exit)()

    def test_the_arguments_of_an_import_are_checked(self):
        sent = []

        def send(out: Output, name: str) -> None:
            sent.append((out, name))

        module = types.SimpleNamespace(__name__="wit_world.imports.http", send=send)
        border.guarded(module, "send")
        module.send(output(), name="half \ud83e")
        self.assertEqual(sent[0][1], "half \ufffd")
        for given, part in [((None, "x"), "`http.send`: `out` must be an Output, not None"), ((output(), 5), "`name` must be a text, not 5")]:
            with self.assertRaisesRegex(border.Misfit, part):
                module.send(*given)


class Crashes(unittest.TestCase):
    def summary(self, source, file="/0/plugin.py", runs=True):
        """What the crash of a file of the author says."""
        crash._runs = runs
        try:
            exec(compile(source, file, "exec"), {"__name__": "plugin"})
        except BaseException as error:
            return crash.summary(error)
        finally:
            crash._runs = False
        self.fail("no exception")

    def test_files_have_the_names_that_the_author_knows(self):
        for file, name in [("/0/a/b.py", "src/a/b.py"), ("/1/hermes_plugin/web.py", "vendor/hermes_plugin/web.py"), ("/2/x.py", "build/packages/x.py")]:
            self.assertEqual(crash.place(file), name)
        for file in ("/python/json/__init__.py", "/9/x.py", "<string>"):
            self.assertEqual(crash.place(file), file)
        self.assertEqual(crash.renamed('  File "/0/plugin.py", line 3'), '  File "src/plugin.py", line 3')

    def test_a_crash_says_what_and_where(self):
        self.assertEqual(self.summary("x = {}\nx['a b']"), "src/plugin.py:2: KeyError: 'a b'")
        self.assertEqual(self.summary("raise ValueError('/0/skills/tea/SKILL.md has no\\nname')"), "src/plugin.py:1: ValueError: src/skills/tea/SKILL.md has no name")
        self.assertRegex(self.summary("def f(:"), "^src/plugin.py:1: SyntaxError: ")

    def test_the_remedy_follows_from_what_python_lacks(self):
        for source, part in [
            ("import os; os.environ['HERMES_NO_SUCH_KEY']", "`web.Secret`"),
            ("import os\nos.environ.get('HERMES_NO_SUCH_KEY')", "`web.Secret`"),
            ("import os\nos.getenv('HERMES_NO_SUCH_KEY')", "`web.Secret`"),
            ("import hermes_no_such_module", "import it at the top of the file"),
            ("raise ModuleNotFoundError('m', name='concurrent.futures.thread')", "no threads"),
            ("raise ModuleNotFoundError('m', name='_multiprocessing')", "no threads"),
            ("raise ModuleNotFoundError('m', name='_socket')", "`hermes_plugin.web.request`"),
            ("raise ModuleNotFoundError('m', name='ctypes')", "compiled code"),
            ("from zoneinfo import ZoneInfoNotFoundError\nraise ZoneInfoNotFoundError('Mars')", "`tzdata`"),
            ("raise TypeError('Object of type Secret is not JSON serializable')", "`send_json`"),
            ("raise AttributeError(\"module 'os' has no attribute 'fork'\")", "`wit_world.imports.process`"),
            ("raise RuntimeError(\"can't start new thread\")", "no threads"),
            ("import subprocess\nsubprocess.run(['/hermes/no/such/program'])", "`wit_world.imports.process`"),
            ("async def f(): pass\nimport asyncio\nasyncio.get_running_loop()", "no event loop"),
            ("open('/hermes/no/such/file')", "`hermes_plugin.documents`"),
            ("from contract import Error\nError('c')", "`record(Error, …)`"),
        ]:
            with mock.patch.object(os.environ, "get", crash._asked, create=True):
                said = self.summary(source)
            self.assertTrue(part in said and said.startswith("src/plugin.py:"), said)
        self.assertIn("`hermes_plugin.web.request`", self.summary("raise ModuleNotFoundError('m', name='_ssl')", runs=False))
        self.assertIn("pyproject.toml", self.summary("import hermes_no_such_module", runs=False))
        self.assertNotIn(";", self.summary("raise ValueError('x')"))
        said = self.summary("raise ImportError('cannot import name tools', name='wit_world.exports')", runs=False)
        self.assertIn("list its world", said)
        # A package with compiled code.
        said = self.summary("raise ImportError('no _multiarray')", file="/2/numpy/__init__.py", runs=False)
        self.assertIn("build/packages/numpy/__init__.py:1: ImportError: no _multiarray; a package that needs compiled code", said)

    def test_what_is_not_there_is_refused_below_the_library(self):
        crash._runs = True
        try:
            for event, given, kind, part in [
                ("socket.__new__", (), OSError, "no sockets"),
                ("urllib.Request", (), OSError, "`hermes_plugin.web.request`"),
                ("subprocess.Popen", (), OSError, "no programs"),
                ("os.system", (), OSError, "no programs"),
                ("_thread.start_new_thread", (), RuntimeError, "no threads"),
                ("_thread.start_joinable_thread", (), RuntimeError, "no threads"),
                ("open", ("notes.txt", "r", 0), FileNotFoundError, "notes.txt"),
                ("sqlite3.connect", ("notes.db",), FileNotFoundError, "no files"),
                ("os.mkdir", ("folder",), FileNotFoundError, "no files"),
            ]:
                with self.assertRaises(kind) as raised:
                    crash._audit(event, given)
                self.assertIn(part, str(raised.exception))
            for event, given in [("open", (1, "w", 0)), ("sqlite3.connect", (":memory:",)), ("import", ("json",)), ("compile", ()), ("os.putenv", ()), ("_thread.get_ident", ())]:
                crash._audit(event, given)
        finally:
            crash._runs = False
        crash._audit("socket.__new__", ())

    def test_only_the_authors_own_code_may_not_ask_for_a_variable_that_is_not_there(self):
        found = {"os": os}
        with mock.patch.object(os.environ, "get", crash._asked, create=True), mock.patch.dict(os.environ, {"HERMES_KEY": "there"}):
            exec(compile("given = os.environ.get('HERMES_KEY'), os.getenv('HERMES_NO_SUCH_KEY', 'none')", "/0/plugin.py", "exec"), found)
            self.assertEqual(found["given"], ("there", "none"))
            exec(compile("given = os.getenv('HERMES_NO_SUCH_KEY')", "/2/package.py", "exec"), found)
            self.assertIsNone(found["given"])

    def test_what_explains_a_crash_is_behind_the_sign_that_the_host_looks_for(self):
        for runs, begin in [(True, "\x1e"), (False, "")]:
            with mock.patch.object(crash, "_runs", runs), mock.patch("os.abort"), mock.patch("sys.stdout"), mock.patch("sys.stderr", io.StringIO()) as said:
                crash._crashed(ValueError, ValueError("x"), None)
            self.assertEqual(said.getvalue(), f"{begin}ValueError: x\n")


class Imports(unittest.TestCase):
    """Modules of the SDK over stand-ins of the bindings."""

    def setUp(self):
        http = types.ModuleType("wit_world.imports.http")
        kinds = {"Secret": "name prefix", "Field": "name value", "Value": "", "Value_Plain": "value", "JsonBody": "text secrets", "Body_Json": "value", "Body_Bytes": "value", "Request": "method url query headers body timeout_ms"}
        for name, fields in kinds.items():
            setattr(http, name, dataclasses.make_dataclass(name, fields.split()))

        def send(request):
            raise NotImplementedError

        send.__module__ = http.__name__
        http.send = send
        imports = types.ModuleType("wit_world.imports")
        imports.__path__, imports.http = [], http
        world = types.ModuleType("wit_world")
        world.imports = imports
        names = {"wit_world": world, "wit_world.imports": imports, http.__name__: http}
        errors = types.SimpleNamespace(failed=None, unavailable=None)
        patched = mock.patch.dict(sys.modules, {**names, "hermes_plugin.errors": errors})
        patched.start()
        self.addCleanup(patched.stop)
        self.http = http

    def test_a_secret_in_json_is_sent_by_its_place(self):
        sent = []
        self.http.send = lambda request: sent.append(request.body) or types.SimpleNamespace(status=200, body=b"", headers=[])
        web = loaded("web")
        web.request("POST", "https://example.org/", send_json={"a/b~": [1, web.Secret("key", "Token ")], "n": {"c": web.Secret("other")}})
        body = sent[0].value
        self.assertEqual(body.text, '{"a/b~": [1, ""], "n": {"c": ""}}')
        self.assertEqual([(place, secret.name, secret.prefix) for place, secret in body.secrets], [("/a~1b~0/1", "key", "Token "), ("/n/c", "other", "")])
        web.request("POST", "https://example.org/", send_json={"a": "ü"})
        self.assertEqual(sent[1].value, '{"a": "ü"}'.encode())

    def test_a_unit_test_reads_what_it_can_replace(self):
        with mock.patch("pkgutil.iter_modules", return_value=[types.SimpleNamespace(name="http")]):
            loaded("testing")
        web = loaded("web")
        by_name = eval("lambda: request('GET', 'https://example.org/')", {"__name__": "plugin", "request": web.request})
        for call, name in [(lambda: web.request("GET", "https://example.org/"), "hermes_plugin.web.request"), (lambda: self.http.send(None), "wit_world.imports.http.send"), (by_name, "plugin.request")]:
            with self.assertRaisesRegex(NotImplementedError, f'`wit_world.imports.http.send` exists only inside Hermes: .*mock.patch\\("{name}"'):
                call()


class Zones(unittest.TestCase):
    def test_zones_are_read_once_and_kept(self):
        from zoneinfo import _common

        with tempfile.TemporaryDirectory() as folder, mock.patch.object(_common, "load_tzdata"):
            zone = Path(folder, "zoneinfo/Europe/Berlin")
            zone.parent.mkdir(parents=True)
            zone.write_bytes(b"TZif2")
            (zone.parent / "__init__.py").write_text("")
            with mock.patch.dict(sys.modules, {"tzdata": types.SimpleNamespace(__file__=f"{folder}/__init__.py")}):
                loaded("zones").keep()
            zone.unlink()
            self.assertEqual(_common.load_tzdata("Europe/Berlin").read(), b"TZif2")
            for name in ("Europe/__init__.py", "Mars"):
                with self.assertRaisesRegex(KeyError, f"no time zone {name}"):
                    _common.load_tzdata(name)


if __name__ == "__main__":
    unittest.main()
