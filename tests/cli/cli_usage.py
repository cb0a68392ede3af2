# SPDX-License-Identifier: Apache-2.0
"""Options, help and keys: what is refused before any work."""
import os
import re

from cli_case import CliCase, DEFAULT_KEY

VERBS = ("show", "keys", "prewarm", "cache", "run", "bench", "tune", "doctor", "help")
MANUAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/gemmjit.1")
FIELDS = ("op, a, b, c, d, p, acc, act, alpha, beta, batch, gather, fp8acc, tile, cluster, sched, tiles, swap_ab, "
          "gate, bias, scale, quant, own, split_k, ctas_per_sm")
PROBLEM = ("op", "a", "b", "c", "d", "p", "acc", "act", "alpha", "beta", "batch", "gather", "fp8acc", "gate", "bias",
           "scale", "quant", "own")
CONFIG = ("tile", "cluster", "sched", "tiles", "swap_ab")


class Options(CliCase):
    def test_no_verb(self):
        self.gemmjit(status=2, err="gemmjit: no verb is given; gemmjit --help lists them\n")

    def test_unknown_verb(self):
        self.refused("frobnicate", message='unknown verb "frobnicate"; gemmjit --help lists them')

    def test_unknown_option(self):
        self.refused("show", "--emt=key", message="unknown option --emt; gemmjit show --help lists the options")

    def test_option_of_another_verb(self):
        self.refused("keys", "--tile", "128x128",
                     message="unknown option --tile; gemmjit keys --help lists the options")

    def test_abbreviation(self):
        self.refused("show", "--em", "key", message="unknown option --em; gemmjit show --help lists the options")

    def test_missing_value(self):
        self.gemmjit("show", "--emit", status=2, err="gemmjit: --emit needs a value\n")

    def test_value_of_a_flag(self):
        self.gemmjit("show", "--json=yes", status=2, err="gemmjit: --json takes no value\n")

    def test_repeated_option(self):
        self.refused("show", "--emit", "key", "--emit", "plan", message="--emit is given twice")
        self.gemmjit("keys", "--json", "--json", status=2, err="gemmjit: --json is given twice\n")
        self.refused("cache", "stat", "--no-cache", "--no-cache", message="--no-cache is given twice")

    def test_empty_value(self):
        for verb, option in (("show", "--emit"), ("show", "-o"), ("prewarm", "--manifest"), ("prewarm", "--model"),
                             ("cache", "--cache-dir")):
            self.refused(verb, option, "", message=f"{option} is given an empty value")
        self.refused("show", "--emit=", message="--emit is given an empty value")
        self.refused("cache", "stat", "--cache-dir=", message="--cache-dir is given an empty value")
        self.assertEqual(self.gemmjit("show", "--emit", "key", "--key", "").out, DEFAULT_KEY + "\n")

    def test_letters_in_one(self):
        for arguments in (("-vv",), ("-vvv",), ("-v", "-v", "-v"), ("-qv",)):
            self.gemmjit("show", "--emit", "key", *arguments, err="")
        self.refused("prewarm", "--key", "tile=128x128", "-qj999",
                     message="-j 999: allowed is a whole number from 1 to 256")
        for text in ("-vx", "-v=1"):
            told = self.gemmjit("show", text, status=2).err
            self.assertIn(f"gemmjit: unknown option {text}; gemmjit show --help lists the options\n", told)

    def test_unexpected_argument(self):
        self.refused("show", "tile=1x1",
                     message='unexpected argument "tile=1x1"; gemmjit show --help says how to use it')

    def test_contradiction(self):
        self.refused("keys", "--no-cache", "--cache-dir", "x",
                     message="--no-cache and --cache-dir contradict each other")

    def test_numbers(self):
        for text in ("0", "-1", "257", "", "1k", "0x10", "99999999999999999999"):
            self.refused("prewarm", "--key", "tile=128x128", "-j", text,
                         message=f"-j {text}: allowed is a whole number from 1 to 256")

    def test_common_options_before_the_verb(self):
        result = self.gemmjit("--cache-dir", self.path("other"), "-q", "cache", "stat", "--json")
        self.assertEqual(result.json()["root"], self.path("other"))

    def test_attached_values(self):
        self.assertEqual(self.gemmjit("show", "--emit=key").out, DEFAULT_KEY + "\n")
        self.gemmjit("show", "--emit=key", "-okey.txt")
        with open(self.path("key.txt"), encoding="utf-8") as file:
            self.assertEqual(file.read(), DEFAULT_KEY + "\n")

    def test_no_invalid_utf8_in_json(self):
        result = self.gemmjit("show", "--emit", b"\xff\xc3\xa4".decode("utf-8", "surrogateescape"), "--json",
                              status=2)
        self.assertIn("--emit \\xff\u00e4: allowed is", result.json()["error"]["message"])

    def test_what_is_quoted(self):
        self.refused("frob\033[2J\n\u0085\u20ac", message='unknown verb "frob\\x1b[2J\\x0a\\xc2\\x85\u20ac"; '
                                                        "gemmjit --help lists them")
        long = "x" * 5000
        for arguments in ((long,), ("show", "--" + long), ("show", "--emit", long), ("cache", long), ("show", long),
                          ("show", "--emit", "key", "--key", long), ("show", "--emit", "key", "--key", long + "=1"),
                          ("show", "--emit", "key", "--tile", long), ("prewarm", "--key", long, "--key", "y"),
                          ("show", "--emit", "key", "--tile", "1x1,sched=" + long), ("prewarm", "--key", "", "-j", long)):
            told = self.gemmjit(*arguments, status=2).err
            self.assertIn("x" * 80, told)
            self.assertIn("...", told)
            self.assertNotIn("x" * 101, told)

    def test_control_characters(self):
        for path in ("no\u009b2Jne", "no\033[2Jne"):
            told = self.gemmjit("prewarm", "--manifest", path, status=2).err
            self.assertTrue(all(character.isprintable() for character in told[:-1]), ascii(told))


class Keys(CliCase):
    def test_unknown_field(self):
        message = f'unknown field "tyle": the fields are {FIELDS}'
        self.refused("show", "--emit", "key", "--key", "tyle=128x128", message=message)

    def test_repeated_field(self):
        message = "field tile is given twice, the second time as 64x128"
        self.refused("show", "--emit", "key", "--key", "tile=128x128,tile=64x128", message=message)
        self.refused("show", "--emit", "key", "--tile", "128x128", "--tile", "64x128", message=message)

    def test_bad_value(self):
        self.refused("show", "--emit", "key", "--sched", "pong", message="sched=pong: allowed is pingpong, coop, single")

    def test_two_fields_in_one_flag(self):
        self.refused("show", "--emit", "key", "--tile", "128x128,sched=coop",
                     message="--tile 128x128,sched=coop: the value of one field has neither comma nor equals sign")

    def test_key_and_flags(self):
        self.refused("show", "--emit", "key", "--key", "tile=128x128", "--sched", "coop",
                     message="--key and flags for its fields (sched=coop) are both given: "
                             "put all fields into one of them")
        self.refused("show", "--emit", "key", "--key", "a=bf16.k", "--key", "b=bf16.k",
                     message="--key is given twice")

    def test_tile_that_does_not_fit(self):
        error = self.gemmjit("show", "--emit", "plan", "--tile", "512x512", "--sched", "coop", "--json",
                             status=2).json()["error"]
        self.assertEqual(error["status"], "GJ_ERR_UNSUPPORTED")
        self.assertTrue(any("tile=512x512" in reason and "232448" in reason and "bytes" in reason
                            for reason in error["reasons"]), error["reasons"])

    def test_refused_key_is_shown_as_key(self):
        result = self.gemmjit("show", "--emit", "key", "--tile", "512x512", "--json").json()
        self.assertEqual(result["fields"]["tile"], "512x512")
        self.assertEqual(",".join(f"{name}={value}" for name, value in result["fields"].items()), result["key"])

    def test_flags_equal_key(self):
        flags = ("--a", "f16.k", "--b=f16.k", "--d", "f32.n", "--tile", "256x128", "--sched", "coop")
        text = "sched=coop,tile=256x128,d=f32.n,b=f16.k,a=f16.k"
        self.same_by_flags(flags, text)

    def same_by_flags(self, flags, text):
        for stage in ("key", "plan", "source"):
            by_flags = self.gemmjit("show", "--emit", stage, *flags, err="")
            by_key = self.gemmjit("show", "--emit", stage, "--key", text, err="")
            self.assertEqual(by_flags.out, by_key.out)

    def test_flags_of_fused_fields(self):
        self.same_by_flags(("--op=gated", "--act", "swiglu", "--gate", "halves", "--d", "none", "--bias=col.bf16",
                            "--scale", "row_col", "--quant=amax", "--p", "e4m3.n", "--tile", "128x128"),
                           "tile=128x128,quant=amax,scale=row_col,bias=col.bf16,gate=halves,act=swiglu,d=none,p=e4m3.n,"
                           "op=gated")
        result = self.gemmjit("show", "--emit=key", "--op", "act", "--act=own", "--own", "0123456789abcdef", "--json")
        fields = result.json()["fields"]
        self.assertEqual((fields["act"], fields["own"], fields["p"]), ("own", "0123456789abcdef", "bf16.n"))
        self.assertNotIn("bias", fields)
        self.assertTrue(result.json()["key"].endswith(",swap_ab=no,own=0123456789abcdef"))

    def test_fused_problem_has_keys(self):
        flags = ("--op=gated", "--act=glu", "--d=none", "--gate", "halves", "--bias", "row.f32", "--scale=tensor",
                 "--quant", "scale")
        keys = self.gemmjit("keys", *flags, err="").out.splitlines()
        self.assertGreater(len(keys), 20)
        for key in keys:
            self.assertTrue(key.startswith("op=gated,") and "act=glu" in key, key)
            self.assertTrue(key.endswith(",gate=halves,bias=row.f32,scale=tensor,quant=scale"), key)
        self.assertEqual(self.gemmjit("keys", *flags, "--json").json()["keys"], keys)

    def test_refused_fused_problem(self):
        self.refused("keys", "--op", "gated", "--act", "relu", "--d=none",
                     message="key is refused for 1 reason: op=gated,a=bf16.k,b=bf16.k,c=none,d=none,p=bf16.n,acc=f32,"
                             "act=relu,alpha=one,beta=none,batch=dense,gather=none,tile=128x192,cluster=2x1,"
                             "sched=pingpong,tiles=static,swap_ab=no,gate=interleaved",
                     reasons=("act=relu does not go with op=gated: allowed is swiglu, swiglu_oai, geglu, reglu, glu, "
                              "own",))
        self.refused("keys", "--gate", "halves",
                     message="gate=halves contradicts op=gemm: it is allowed only with op=gated and op=dgated")
        self.refused("keys", "--bias", "f32",
                     message="bias=f32: allowed is none, row.f32, row.f16, row.bf16, col.f32, col.f16, col.bf16")


class Help(CliCase):
    def test_version(self):
        self.assertRegex(self.gemmjit("--version", err="").out, r"\Agemmjit \d+\.\d+\.\d+\n\Z")

    def test_help_of_every_verb(self):
        whole = self.gemmjit("--help", err="").out
        for verb in VERBS:
            self.assertIn(f"\n  {verb} ", whole)
            text = self.gemmjit(verb, "--help", err="").out
            self.assertTrue(text.startswith(f"usage: gemmjit {verb} "))
            self.assertEqual(self.gemmjit(verb, "-h").out, text)
            self.assertIn("Exit status: 0 done, 1 the work failed, 2 bad usage or input, 3 no GPU", text)

    def test_help_as_a_verb(self):
        self.assertEqual(self.gemmjit("help", err="").out, self.gemmjit("--help").out)
        for verb in VERBS:
            self.assertEqual(self.gemmjit("help", verb, err="").out, self.gemmjit(verb, "--help").out)
        self.gemmjit("help", "frob", status=2, err='gemmjit: unknown verb "frob"; gemmjit --help lists them\n')

    def test_fields_of_verbs(self):
        """show takes every field as a flag, keys and run those of the problem."""
        batch_is_a_number = "run"
        for verb in ("show", "keys", "run"):
            text = self.gemmjit(verb, "--help").out
            for field in PROBLEM + CONFIG:
                if field == "batch" and verb == batch_is_a_number:
                    continue
                taken = verb == "show" or field in PROBLEM
                self.assertEqual(re.search(rf"(?m)^  --{field} ", text) is not None, taken, f"{verb} --{field}")

    def test_help_says_what_is_accepted(self):
        self.assertIn("gemmjit keys lists the accepted\nkeys of a problem", self.gemmjit("show", "--help").out)

    def test_default_key(self):
        self.assertIn(f"Default: {DEFAULT_KEY}\n", self.gemmjit("show", "--help").out)

    def test_manual_has_every_option(self):
        with open(MANUAL, encoding="utf-8") as file:
            manual = file.read()
        for verb in VERBS:
            self.assertIn(f"\n.It Cm {verb}\n", manual)
            for option in re.findall(r"^  -(-?[a-z0-9-]+)", self.gemmjit(verb, "--help").out, re.MULTILINE):
                self.assertRegex(manual, rf"(?m)^\.It .*\bFl {option}(?![a-z0-9-])", f"{verb}: -{option}")
