# SPDX-License-Identifier: Apache-2.0
"""--act-source: a function of the user's own, good and bad."""
from cli_case import CliCase

LEAKY = """// A leaky ReLU.
float slope(float x) { return x > 0 ? 1.0f : 0.01f; } // '{' in a comment is none
float leaky(float x)
{
    return x * slope(x);
}
"""
TILE = ("--tile=64x64", "--cluster=1x1", "--d=none")


class Own(CliCase):
    def show(self, name, source, *arguments, emit="source", status=0, op="act"):
        path = self.write(name, source)
        return self.gemmjit("show", f"--op={op}", *TILE, "--act-source", path, *arguments, f"--emit={emit}", status=status)

    def entries(self):
        return self.gemmjit("cache", "stat", "--json").json()["entries"]

    def test_text_is_in_the_unit_and_its_path_is_not(self):
        first = self.show("leaky.cu", LEAKY, "--act-name=leaky").out
        self.assertIn(LEAKY, first)
        self.assertIn("own::leaky;", first)
        self.assertNotIn("leaky.cu", first)
        self.assertEqual(self.show("other name.cu", LEAKY, "--act-name=leaky").out, first)

    def test_id_follows_name_and_text(self):
        def fields(source, *arguments):
            return self.gemmjit("show", "--op=act", "--act-source", self.write("a.cu", source), *arguments, "--emit=key",
                                "--json").json()["fields"]
        ids = [fields(LEAKY, "--act-name=leaky")["own"], fields(LEAKY, "--act-name=slope")["own"],
               fields(LEAKY + "\n", "--act-name=leaky")["own"]]
        self.assertEqual(len(set(ids)), 3)
        self.assertEqual(fields(LEAKY, "--act-name=leaky"), fields(LEAKY, "--act-name=leaky"))
        self.assertEqual(fields(LEAKY, "--act-name=leaky")["act"], "own")
        self.assertRegex(ids[0], "^[0-9a-f]{16}$")

    def test_signatures(self):
        self.need_nvrtc()
        self.show("a.cu", LEAKY, "--act-name=leaky", emit="resources")
        self.show("a.cu", "float f(float gate, float up) { return silu(gate) * up; }", emit="resources", op="gated")
        dact = "void f(float x, float g, float *dx, float *y) { *dx = 2 * g * x; *y = x * x; }"
        self.gemmjit("show", "--op=dact", "--c=bf16.n", "--tile=64x64", "--cluster=1x1", "--act-source",
                     self.write("a.cu", dact), "--emit=resources")
        dgated = "void f(float a, float b, float g, float *da, float *db, float *y) { *da = g * b; *db = g * a; *y = a * b; }"
        self.gemmjit("show", "--op=dgated", "--c=bf16.n", "--tile=64x64", "--cluster=1x1", "--act-source",
                     self.write("a.cu", dgated), "--emit=resources")

    def test_errors_are_at_the_users_line(self):
        self.need_nvrtc()
        cases = (("\nfloat f(float x) { return x +; }", 2, "expected an expression"),
                 ("\n\nfloat f(double x) { return 1; }", 3, "float (double)"),
                 ("int f(float x) { return 1; }", 1, "int (float)"),
                 ("float f(float x, float y) { return x; }", 1, "float (float, float)"),
                 ("float g(float x) { return x; }", 1, 'has no member "f"'),
                 ("float f(float x)\n{\n    if (x > 0)\n        return x;\n}", 5, "missing return statement"),
                 ("float f(float x) { return unknown(x); }", 1, '"unknown" is undefined'))
        for source, line, words in cases:
            with self.subTest(source=source):
                error = self.gemmjit("prewarm", "--key=op=act,d=none,tile=64x64,cluster=1x1", "--act-source",
                                     self.write("mine.cu", source), "--json", status=1).json()["keys"][0]["error"]
                self.assertEqual(error["status"], "GJ_ERR_COMPILE")
                places = [(place["file"], place["line"]) for place in error["locations"]]
                self.assertEqual(places[0], ("mine.cu", line), error["message"])
                self.assertIn(words, error["locations"][0]["message"])
        self.assertEqual(self.entries(), 0, "nothing that failed was cached")

    def test_refused_before_any_compile(self):
        def refused(source, message, *arguments):
            path = self.write("mine.cu", source)
            self.refused("show", "--op=act", "--act-source", path, *arguments, "--emit=source", message=message)
        refused("float f(float x) { return x; }\n#define x 1\n",
                "mine.cu:2: a preprocessor directive, which would act on the kernel too: none is allowed")
        refused("float f(float x) { return x; }\n}\n", "mine.cu:2: braces do not match")
        refused("float f(float x) {\n", "mine.cu:2: braces do not match")
        rule = 'must be an identifier of at most 63 characters, without "__" and no word of C++'
        for name in ("a b", "1f", "a__b", "float", "own", "x" * 64, "f;"):
            refused(LEAKY, f'own function: name "{name}": {rule}', f"--act-name={name}")
        refused("f" * 65537, "mine.cu: more than 65536 bytes")

    def test_key_and_source_must_agree(self):
        path = self.write("a.cu", LEAKY)
        own = self.gemmjit("show", "--op=act", "--act-source", path, "--act-name=leaky", "--emit=key",
                           "--json").json()["fields"]["own"]
        key = f"op=act,act=own,own={own}"
        self.gemmjit("show", "--key", key, "--act-source", path, "--act-name=leaky", "--emit=source")
        self.refused("show", "--key", key, "--act-source", path, "--act-name=slope", "--emit=source",
                     message=f"own={own} of the key is not the function slope of a.cu, which is own="
                     + self.gemmjit("show", "--op=act", "--act-source", path, "--act-name=slope", "--emit=key",
                                    "--json").json()["fields"]["own"])
        self.refused("show", "--key", key, "--emit=source",
                     message=f"own={own}: no function with this id is known; gj_own_add makes one known")
        self.refused("show", "--op=act", "--act-name=leaky", "--emit=source", message="--act-name needs --act-source")
        self.gemmjit("show", "--op=act", "--act-source", self.path("missing.cu"), "--emit=source", status=2)

    def test_cached_once(self):
        self.need_nvrtc()
        arguments = ("prewarm", "--key=op=act,d=none,tile=64x64,cluster=1x1", "--act-source", self.write("a.cu", LEAKY),
                     "--act-name=leaky", "--json")
        first, second = self.gemmjit(*arguments).json(), self.gemmjit(*arguments).json()
        self.assertEqual((first["stats"]["compiles"], second["stats"]["compiles"], self.entries()), (1, 0, 1))
        self.write("a.cu", LEAKY.replace("0.01f", "0.02f"))
        self.assertEqual(self.gemmjit(*arguments).json()["stats"]["compiles"], 1)
        self.assertEqual(self.entries(), 2)
