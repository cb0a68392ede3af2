# SPDX-License-Identifier: Apache-2.0
"""prewarm --model: the problems of public models, and that a cache filled with their keys misses nothing."""
import json
import os
import re
import signal
import subprocess

import cli_case
from cli_case import CliCase

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data/models")
BF16, F16, FP8 = "a=bf16.k,b=bf16.k,d=bf16.n", "a=f16.k,b=f16.k,d=f16.n", "a=e4m3.k,b=e4m3.k,d=bf16.n"

# (model, tp) -> weight: (N, K), worked out by hand from the sizes that its config has.
EXPECTED = {
    ("llama-3-8b", 1): {"qkv_proj": (6144, 4096), "o_proj": (4096, 4096), "gate_up_proj": (28672, 4096),
                        "down_proj": (4096, 14336), "lm_head": (128256, 4096)},
    ("llama-3-8b", 8): {"qkv_proj": (768, 4096), "o_proj": (4096, 512), "gate_up_proj": (3584, 4096),
                        "down_proj": (4096, 1792), "lm_head": (16032, 4096)},
    # 8 key-value heads on 16 ranks: two ranks copy each
    ("llama-3-8b", 16): {"qkv_proj": (512, 4096), "o_proj": (4096, 256), "gate_up_proj": (1792, 4096),
                         "down_proj": (4096, 896), "lm_head": (8016, 4096)},
    ("qwen3-8b", 1): {"qkv_proj": (6144, 4096), "o_proj": (4096, 4096), "gate_up_proj": (24576, 4096),
                      "down_proj": (4096, 12288), "lm_head": (151936, 4096)},
    ("qwen3-8b", 8): {"qkv_proj": (768, 4096), "o_proj": (4096, 512), "gate_up_proj": (3072, 4096),
                      "down_proj": (4096, 1536), "lm_head": (18992, 4096)},
    # heads of 128 make 4096 columns, twice the hidden size
    ("qwen3-30b-a3b", 1): {"qkv_proj": (5120, 2048), "o_proj": (2048, 4096), "router": (128, 2048),
                           "experts.gate_up_proj": (1536, 2048), "experts.down_proj": (2048, 768),
                           "lm_head": (151936, 2048)},
    ("qwen3-30b-a3b", 8): {"qkv_proj": (768, 2048), "o_proj": (2048, 512), "router": (128, 2048),
                           "experts.gate_up_proj": (192, 2048), "experts.down_proj": (2048, 96),
                           "lm_head": (18992, 2048)},
    ("mixtral-8x7b", 1): {"qkv_proj": (6144, 4096), "o_proj": (4096, 4096), "router": (8, 4096),
                          "experts.gate_up_proj": (28672, 4096), "experts.down_proj": (4096, 14336),
                          "lm_head": (32000, 4096)},
    ("mixtral-8x7b", 8): {"qkv_proj": (768, 4096), "o_proj": (4096, 512), "router": (8, 4096),
                          "experts.gate_up_proj": (3584, 4096), "experts.down_proj": (4096, 1792),
                          "lm_head": (4000, 4096)},
    ("deepseek-v3", 1): {"fused_qkv_a_proj_with_mqa": (2112, 7168), "q_a_proj": (1536, 7168),
                         "q_b_proj": (24576, 1536), "kv_a_proj_with_mqa": (576, 7168), "kv_b_proj": (32768, 512),
                         "o_proj": (7168, 16384), "gate_up_proj": (36864, 7168), "down_proj": (7168, 18432),
                         "router": (256, 7168), "experts.gate_up_proj": (4096, 7168),
                         "experts.down_proj": (7168, 2048), "shared_experts.gate_up_proj": (4096, 7168),
                         "shared_experts.down_proj": (7168, 2048), "lm_head": (129280, 7168)},
    # the low-rank projections of the hidden state are on every rank whole
    ("deepseek-v3", 8): {"fused_qkv_a_proj_with_mqa": (2112, 7168), "q_a_proj": (1536, 7168),
                         "q_b_proj": (3072, 1536), "kv_a_proj_with_mqa": (576, 7168), "kv_b_proj": (4096, 512),
                         "o_proj": (7168, 2048), "gate_up_proj": (4608, 7168), "down_proj": (7168, 2304),
                         "router": (256, 7168), "experts.gate_up_proj": (512, 7168),
                         "experts.down_proj": (7168, 256), "shared_experts.gate_up_proj": (512, 7168),
                         "shared_experts.down_proj": (7168, 256), "lm_head": (16160, 7168)},
    ("deepseek-v2-lite", 1): {"q_proj": (3072, 2048), "kv_a_proj_with_mqa": (576, 2048), "kv_b_proj": (4096, 512),
                              "o_proj": (2048, 2048), "gate_up_proj": (21888, 2048), "down_proj": (2048, 10944),
                              "router": (64, 2048), "experts.gate_up_proj": (2816, 2048),
                              "experts.down_proj": (2048, 1408), "shared_experts.gate_up_proj": (5632, 2048),
                              "shared_experts.down_proj": (2048, 2816), "lm_head": (102400, 2048)},
    ("deepseek-v2-lite", 8): {"q_proj": (384, 2048), "kv_a_proj_with_mqa": (576, 2048), "kv_b_proj": (512, 512),
                              "o_proj": (2048, 256), "gate_up_proj": (2736, 2048), "down_proj": (2048, 1368),
                              "router": (64, 2048), "experts.gate_up_proj": (352, 2048),
                              "experts.down_proj": (2048, 176), "shared_experts.gate_up_proj": (704, 2048),
                              "shared_experts.down_proj": (2048, 352), "lm_head": (12800, 2048)},
    ("gemma-2-9b", 1): {"qkv_proj": (8192, 3584), "o_proj": (3584, 4096), "gate_up_proj": (28672, 3584),
                        "down_proj": (3584, 14336), "lm_head": (256000, 3584)},
    ("gemma-2-9b", 8): {"qkv_proj": (1024, 3584), "o_proj": (3584, 512), "gate_up_proj": (3584, 3584),
                        "down_proj": (3584, 1792), "lm_head": (32000, 3584)},
    ("phi-2", 1): {"qkv_proj": (7680, 2560), "o_proj": (2560, 2560), "fc1": (10240, 2560), "fc2": (2560, 10240),
                   "lm_head": (51200, 2560)},
    ("phi-2", 8): {"qkv_proj": (960, 2560), "o_proj": (2560, 320), "fc1": (1280, 2560), "fc2": (2560, 1280),
                   "lm_head": (6400, 2560)},
    ("phi-4", 1): {"qkv_proj": (7680, 5120), "o_proj": (5120, 5120), "gate_up_proj": (35840, 5120),
                   "down_proj": (5120, 17920), "lm_head": (100352, 5120)},
    ("phi-4", 2): {"qkv_proj": (3840, 5120), "o_proj": (5120, 2560), "gate_up_proj": (17920, 5120),
                   "down_proj": (5120, 8960), "lm_head": (50176, 5120)},
    ("mistral-nemo", 1): {"qkv_proj": (6144, 5120), "o_proj": (5120, 4096), "gate_up_proj": (28672, 5120),
                          "down_proj": (5120, 14336), "lm_head": (131072, 5120)},
    ("mistral-nemo", 8): {"qkv_proj": (768, 5120), "o_proj": (5120, 512), "gate_up_proj": (3584, 5120),
                          "down_proj": (5120, 1792), "lm_head": (16384, 5120)},
    ("qwen2-7b", 1): {"qkv_proj": (4608, 3584), "o_proj": (3584, 3584), "gate_up_proj": (37888, 3584),
                      "down_proj": (3584, 18944), "lm_head": (152064, 3584)},
    ("qwen2-7b", 4): {"qkv_proj": (1152, 3584), "o_proj": (3584, 896), "gate_up_proj": (9472, 3584),
                      "down_proj": (3584, 4736), "lm_head": (38016, 3584)},
    ("qwen1.5-moe-a2.7b", 1): {"qkv_proj": (6144, 2048), "o_proj": (2048, 2048), "router": (60, 2048),
                               "experts.gate_up_proj": (2816, 2048), "experts.down_proj": (2048, 1408),
                               "shared_experts.gate_up_proj": (11264, 2048),
                               "shared_experts.down_proj": (2048, 5632), "lm_head": (151936, 2048)},
    ("qwen1.5-moe-a2.7b", 8): {"qkv_proj": (768, 2048), "o_proj": (2048, 256), "router": (60, 2048),
                               "experts.gate_up_proj": (352, 2048), "experts.down_proj": (2048, 176),
                               "shared_experts.gate_up_proj": (1408, 2048),
                               "shared_experts.down_proj": (2048, 704), "lm_head": (18992, 2048)},
}
DTYPES = {"gemma-2-9b": ("--dtype=bf16",)}  # the config says float32


def config_of(name):
    return os.path.join(MODELS, name + ".json")


def evaluate(formula, config, tp):
    """What a formula of --dry-run gives with the members of a config."""
    values = {name: value for name, value in config.items() if isinstance(value, int)}
    values.setdefault("head_dim", values["hidden_size"] // values["num_attention_heads"])
    padded = formula.replace("vocab_size, padded to a multiple of 64,", str(-(-values["vocab_size"] // 64) * 64))
    names = {"max": max, "tp": tp, **values}
    return eval(padded.replace("/", "//"), {"__builtins__": {}}, names)  # pylint: disable=eval-used


class ModelCase(CliCase):
    def plan(self, name, *more, err=None):
        return self.gemmjit("prewarm", "--model", config_of(name), "--dry-run", "--json", *more, err=err).json()

    def look_up(self, problems, m_max, sms=132, env=None):
        """Every M of every problem in a process that may not compile."""
        arguments = [cli_case.MODEL_LOOKUP, self.cache, str(m_max), str(sms)]
        for text, n, k in problems:
            arguments += [text, str(n), str(k)]
        process = subprocess.run(arguments, env=self.environment({"GEMMJIT_NVRTC": "/nonexistent", **(env or {})}), check=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=200)
        return json.loads(process.stdout), process.stderr


class Problems(ModelCase):
    def test_by_hand(self):
        self.assertEqual({name for name, _ in EXPECTED}, {os.path.splitext(file)[0] for file in os.listdir(MODELS)})
        for (name, tp), weights in EXPECTED.items():
            plan = self.plan(name, "-q", "--m-max=1", f"--tp={tp}", *DTYPES.get(name, ()), err="")["model"]
            found = {problem["weight"]: (problem["n"], problem["k"]) for problem in plan["problems"]}
            self.assertEqual(found, weights, (name, tp))
            self.assertEqual(len(plan["problems"]), len(weights))
            with open(config_of(name), encoding="utf-8") as file:
                config = json.load(file)
            self.assertEqual((plan["architecture"], plan["tp"]), (config["architectures"][0], tp))
            for problem in plan["problems"]:
                told = [evaluate(problem[formula], config, tp) for formula in ("n_formula", "k_formula")]
                self.assertEqual(told, [problem["n"], problem["k"]], (name, tp, problem))
                self.assertEqual(problem["num_keys"], 1)

    def test_places(self):
        places = {p["weight"]: p["place"] for p in self.plan("deepseek-v3", "--m-max=1")["model"]["problems"]}
        self.assertEqual(places["o_proj"], "layers 0 to 60")
        self.assertEqual(places["gate_up_proj"], "layers 0 to 2")
        self.assertEqual(places["router"], "layers 3 to 60")
        self.assertEqual(places["experts.down_proj"], "each of 256 experts of layers 3 to 60")
        self.assertEqual(places["lm_head"], "the model, once")
        places = {p["weight"]: p["place"] for p in self.plan("deepseek-v2-lite", "--m-max=1")["model"]["problems"]}
        self.assertEqual(places["down_proj"], "layer 0")

    def test_types(self):
        """The config says one, --dtype says another, --fp8 leaves the router and the head as they are."""
        def types(name, *more):
            problems = self.plan(name, "--m-max=1", *more)["model"]["problems"]
            return {problem["weight"]: problem["problem"] for problem in problems}
        self.assertEqual(set(types("llama-3-8b").values()), {BF16})
        self.assertEqual(set(types("phi-2").values()), {F16})
        self.assertEqual(set(types("phi-2", "--dtype", "bf16").values()), {BF16})
        fp8 = types("deepseek-v3", "--fp8")
        self.assertEqual({weight for weight, text in fp8.items() if text == BF16}, {"router", "lm_head"})
        self.assertEqual({text for weight, text in fp8.items() if weight not in ("router", "lm_head")}, {FP8})
        keys = self.plan("deepseek-v3", "--m-max=1", "--fp8")["keys"]
        self.assertTrue(all(("fp8acc=promoted" in key) == ("a=e4m3.k" in key) for key in keys), keys)

    def test_text(self):
        result = self.gemmjit("prewarm", "--model", config_of("mixtral-8x7b"), "--dry-run", "--m-max=32", "--tp=2", err="")
        table, _, keys = result.out.partition("\n\n")
        lines = table.splitlines()
        self.assertEqual(lines[0], "MixtralForCausalLM, --tp 2, M from 1 to 32, 132 SMs")
        self.assertEqual(lines[1].split(), ["N", "K", "A,", "B", "D", "keys", "weight"])
        self.assertRegex(lines[5], r"^ +14336 +4096  bf16  bf16 +\d+  experts.gate_up_proj, each of 8 experts of layers 0 "
                                   r"to 31: N = 2 \* intermediate_size / tp, K = hidden_size$")
        self.assertEqual(len(lines), 2 + 6)
        self.assertEqual(keys.splitlines(), self.plan("mixtral-8x7b", "--m-max=32", "--tp=2")["keys"])
        self.assertFalse(os.path.exists(self.cache), "a dry run touches no cache")

    def test_rows_that_need_padding(self):
        self.plan("qwen1.5-moe-a2.7b", "--m-max=1", err="gemmjit: warning: router: a row of D, 60 elements of bf16, is no "
                  "multiple of 16 bytes: it runs with padded rows only\n")
        self.plan("qwen1.5-moe-a2.7b", "--m-max=1", "-q", err="")


class Keys(ModelCase):
    def test_those_of_every_m(self):
        """As many keys as a process that asks for each M sees, and those; for two numbers of SMs."""
        problems = [(BF16, 768, 4096), (BF16, 4096, 512), (BF16, 3584, 4096), (BF16, 4096, 1792), (BF16, 16032, 4096)]
        lists = []
        for sms in (132, 78):
            plan = self.plan("llama-3-8b", "--tp=8", "--m-max=1500", f"--sms={sms}", "-j2")
            counts, _ = self.look_up(problems, 1500, sms)
            self.assertEqual(counts["lookups"], 5 * 1500)
            self.assertEqual((counts["misses"], counts["failures"]), (5 * 1500, 0))
            self.assertEqual((len(plan["keys"]), plan["num_all"]), (counts["keys"], counts["keys"]))
            self.assertEqual(len(set(plan["keys"])), len(plan["keys"]))
            lists.append(plan["keys"])
        self.assertNotEqual(sorted(lists[0]), sorted(lists[1]))

    def test_threads_change_nothing(self):
        one, four = (self.plan("deepseek-v3", "--m-max=300", jobs) for jobs in ("-j1", "-j4"))
        self.assertEqual(one, four)

    def test_shards(self):
        whole = self.plan("mixtral-8x7b", "--m-max=600")
        parts = [self.plan("mixtral-8x7b", "--m-max=600", f"--shard={i}/3")["keys"] for i in (1, 2, 3)]
        self.assertEqual(sorted(sum(parts, [])), sorted(whole["keys"]))
        self.assertGreater(len(whole["keys"]), 6)
        self.assertLessEqual(max(map(len, parts)) - min(map(len, parts)), 1)


class Tuned(ModelCase):
    UNUSUAL = "tile=64x48,cluster=1x2,sched=coop,tiles=dynamic,swap_ab=no"

    def test_keys_of_tables(self):
        """Those of any GPU with as many SMs, for the classes up to that of --m-max."""
        arguments = ("prewarm", "--model", config_of("llama-3-8b"), "--tp=8", "--m-max=20", "--dry-run", "--json")
        plain = self.gemmjit(*arguments).json()["keys"]
        place = {"n": 768, "k": 4096, "config": self.UNUSUAL}
        table = self.write_table("table.json", {**place, "m_class": 24},
                                 {**place, "m_class": 64, "config": "tile=64x80"},
                                 {**place, "m_class": 8, "num_sms": 78, "config": "tile=64x112"},
                                 {**place, "m_class": 8, "k": 4097, "config": "tile=64x144"},
                                 {**place, "m_class": 8, "batch": 2, "config": "tile=64x144"})
        keys = self.gemmjit(*arguments, env={"GEMMJIT_TUNING": table}, err="").json()["keys"]
        more, = set(keys) - set(plain)
        self.assertIn(self.UNUSUAL, more)
        self.assertEqual(len(keys), len(plain) + 1)

    def test_a_table_that_is_left_out(self):
        arguments = ("prewarm", "--model", config_of("llama-3-8b"), "--m-max=1", "-j1")
        env = {"GEMMJIT_TUNING": self.path("none.json")}
        warning = (f"gemmjit: warning: tuning table left out: {self.path('none.json')} cannot be read: "
                   "No such file or directory\n")
        self.gemmjit(*arguments, "--dry-run", env=env, err=warning)
        self.need_nvrtc()
        self.assertEqual(self.gemmjit(*arguments, env=env).err.count(warning), 1)

    def test_no_miss_afterwards(self):
        self.need_nvrtc()
        table = self.write_table("table.json", {"n": 768, "k": 4096, "m_class": 24, "config": self.UNUSUAL})
        env = {"GEMMJIT_TUNING": table, "LOOKUP_GPU": "Idle GPU"}
        told = self.gemmjit("prewarm", "--model", config_of("llama-3-8b"), "--tp=8", "--m-max=20", "--json", env=env).json()
        problems = [(BF16, n, k) for n, k in EXPECTED["llama-3-8b", 8].values()]
        counts, err = self.look_up(problems, 20, env=env)
        self.assertEqual((counts["misses"], counts["failures"]), (0, 0), err)
        plain, _ = self.look_up(problems, 20)
        self.assertEqual(told["num_all"], plain["keys"] + 1)


class ColdCache(ModelCase):
    M_MAX = 300

    def test_no_miss_afterwards(self):
        """A cold prewarm, then a server that may not compile runs every M; a removed entry is missed."""
        self.need_nvrtc()
        arguments = ("prewarm", "--model", config_of("qwen3-30b-a3b"), "--tp=8", f"--m-max={self.M_MAX}", "-j2", "--json")
        problems = [(BF16, n, k) for n, k in EXPECTED["qwen3-30b-a3b", 8].values()]
        told = self.gemmjit(*arguments).json()
        total = told["num_all"]
        self.assertGreater(total, 5)
        self.assertEqual((told["compiled"], told["disk"], told["failed"], told["not_stored"]), (total, 0, 0, 0))
        self.assertEqual(len(told["model"]["problems"]), len(problems))
        counts, err = self.look_up(problems, self.M_MAX)
        self.assertEqual(counts, {"lookups": 6 * self.M_MAX, "misses": 0, "failures": 0, "keys": total,
                                  "disk_hits": total, "compiles": 0, "nvrtc_opens": 0}, err)
        os.unlink(self.gemmjit("cache", "list", "--json").json()["entries"][0]["file"])
        counts, err = self.look_up(problems, self.M_MAX)
        self.assertGreater(counts["misses"], 0)
        self.assertIn("M = ", err)
        again = self.gemmjit(*arguments).json()
        self.assertEqual((again["compiled"], again["disk"]), (1, total - 1))

    def test_killed_and_resumed(self):
        """What was compiled before a kill is not compiled again."""
        self.need_nvrtc()
        arguments = ("prewarm", "--model", config_of("llama-3-8b"), "--tp=8", "--m-max=400", "-j1")
        process = subprocess.Popen([cli_case.GEMMJIT, *arguments], env=self.environment(None), text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        with process:
            for line in process.stderr:
                if re.match(r"\[3/", line):
                    process.send_signal(signal.SIGKILL)
                    break
        self.assertEqual(process.wait(), -signal.SIGKILL)
        told = self.gemmjit(*arguments, "--json").json()
        self.assertGreaterEqual(told["disk"], 3)
        self.assertEqual((told["compiled"] + told["disk"], told["failed"]), (told["num_all"], 0))
        self.assertGreater(told["compiled"], 0)
