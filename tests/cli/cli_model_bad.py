# SPDX-License-Identifier: Apache-2.0
"""prewarm --model: configs and options that are refused, with what is told."""
import json
import os

from cli_case import CliCase
from cli_model import config_of

RANGE = "allowed is a whole number from 1 to 2147483647"


def changed(name, **changes):
    """The text of a config with members changed; None takes one away."""
    with open(config_of(name), encoding="utf-8") as file:
        config = json.load(file)
    for member, value in changes.items():
        config.pop(member)
        if value is not None:
            config[member] = value
    return json.dumps(config)


class BadConfig(CliCase):
    def check(self, text, message, *more):
        path = self.write("config.json", text)
        error = self.refused("prewarm", "--model", path, "--m-max=1", *more, message=message.replace("FILE", path))
        self.assertEqual(error["status"], "GJ_ERR_ARGUMENT")
        self.assertFalse(os.path.exists(self.cache), "nothing may be compiled")

    def accepted(self, text, *more):
        path = self.write("config.json", text)
        return self.gemmjit("prewarm", "--model", path, "--m-max=1", "--dry-run", "--json", *more, err="").json()["model"]

    def test_no_document(self):
        self.check("", "FILE:1:1: this is not JSON")
        self.check('{"architectures":\n ["LlamaForCausalLM"],\n "hidden_size": 4k}', "FILE:3:18: this is not JSON")
        self.check("[]", "FILE: the document is not an object, as a model's config is")
        self.check('{"a": "\\u0000"}', r"FILE:1:8: a text has no \u0000 in it")
        self.refused("prewarm", "--model", "/nonexistent/config.json",
                     message="/nonexistent/config.json cannot be read: No such file or directory")
        self.refused("prewarm", "--model", "/tmp", message="/tmp cannot be read: Is a directory")
        self.check(" " * (16 << 20) + "{}", "FILE is larger than 16777216 bytes")
        self.check("[" * 5000, "FILE:1:1001: this is not JSON")

    def test_architecture(self):
        message = "FILE: member architectures is not an array with one text"
        for text in ("{}", '{"architectures": null}', '{"architectures": "LlamaForCausalLM"}', '{"architectures": []}',
                     '{"architectures": [7]}', '{"architectures": ["LlamaForCausalLM", "LlamaForCausalLM"]}'):
            self.check(text, message)
        known = ("LlamaForCausalLM, MistralForCausalLM, MixtralForCausalLM, Qwen2ForCausalLM, Qwen2MoeForCausalLM, "
                 "Qwen3ForCausalLM, Qwen3MoeForCausalLM, DeepseekV2ForCausalLM, DeepseekV3ForCausalLM, GemmaForCausalLM, "
                 "Gemma2ForCausalLM, Gemma3ForCausalLM, PhiForCausalLM, Phi3ForCausalLM, PhiMoEForCausalLM")
        self.check('{"architectures": ["GPT2LMHeadModel"]}',
                   f'FILE: architecture "GPT2LMHeadModel" is unknown: known are {known}')
        self.check('{"architectures": ["x\\u001b[2J\\n"]}', f'FILE: architecture "x\\x1b[2J\\x0a" is unknown: known are {known}')

    def test_missing(self):
        """Every member that counts, taken away from a model that has no rule for its absence."""
        cases = [("mixtral-8x7b", member) for member in
                 ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size",
                  "num_key_value_heads", "num_local_experts")]
        cases += [("deepseek-v3", member) for member in
                  ("n_routed_experts", "moe_intermediate_size", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim",
                   "v_head_dim")]
        cases += [("qwen3-8b", "head_dim"), ("gemma-2-9b", "head_dim"), ("qwen2-7b", "num_key_value_heads"),
                  ("mistral-nemo", "num_key_value_heads"), ("qwen3-30b-a3b", "num_experts"),
                  ("qwen1.5-moe-a2.7b", "shared_expert_intermediate_size")]
        for name, member in cases:
            text = changed(name, **{member: None})
            architecture = json.loads(text)["architectures"][0]
            message = (f"FILE: no member {member}: {architecture} needs it, a whole number from 1 to 2147483647")
            self.check(text, message)
            self.check(text.replace("{", '{"%s": null, ' % member, 1), message)
        self.check(changed("deepseek-v3", first_k_dense_replace=None),
                   "FILE: no member first_k_dense_replace: DeepseekV3ForCausalLM needs it, a whole number from 0 to 2147483647")

    def test_values(self):
        for written, told in (("0", "0"), ("-4096", "-4096"), ("4096.5", "4096.5"), ("2147483648", "2147483648"),
                              ("1e300", "1e+300"), ("1e999", "inf"), ("-1e999", "-inf")):
            text = changed("llama-3-8b").replace('"hidden_size": 4096', f'"hidden_size": {written}')
            self.check(text, f"FILE: hidden_size {told}: {RANGE}")
        for written in ('"4096"', "true", "[4096]", "{}"):
            text = changed("llama-3-8b").replace('"hidden_size": 4096', f'"hidden_size": {written}')
            self.check(text, f"FILE: hidden_size is no number: {RANGE}")
        for member in ("intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "vocab_size"):
            self.check(changed("llama-3-8b", **{member: 0}), f"FILE: {member} 0: {RANGE}")
        self.check(changed("llama-3-8b")[:-1] + ', "hidden_size": 4096}', "FILE: member hidden_size is given twice")
        self.check(changed("llama-3-8b")[:-1] + ', "head_dim": 0}', f"FILE: head_dim 0: {RANGE}")

    def test_values_that_contradict(self):
        self.check(changed("llama-3-8b", num_key_value_heads=5),
                   "FILE: num_attention_heads 32 is no multiple of num_key_value_heads 5")
        self.check(changed("llama-3-8b", hidden_size=4100),
                   "FILE: no member head_dim, and hidden_size 4100 is no multiple of num_attention_heads 32")
        self.check(changed("deepseek-v3", first_k_dense_replace=62),
                   "FILE: first_k_dense_replace 62 is more than num_hidden_layers 61")
        self.check(changed("llama-3-8b", num_attention_heads=2147483647, num_key_value_heads=2147483647,
                           hidden_size=2147483647),
                   "FILE: N of qkv_proj, (num_attention_heads / tp + 2 * max(num_key_value_heads / tp, 1)) * head_dim, is "
                   "more than 2147479551")
        self.check(changed("qwen3-8b", num_attention_heads=2147483647, num_key_value_heads=1, head_dim=2147483647),
                   "FILE: N of qkv_proj, (num_attention_heads / tp + 2 * max(num_key_value_heads / tp, 1)) * head_dim, is "
                   "more than 2147479551")
        self.check(changed("llama-3-8b", intermediate_size=2147483647),
                   "FILE: N of gate_up_proj, 2 * intermediate_size / tp, is more than 2147479551")
        self.check(changed("deepseek-v3", n_shared_experts=2147483647, moe_intermediate_size=1 << 30),
                   "FILE: N of experts.gate_up_proj, 2 * moe_intermediate_size / tp, is more than 2147479551")
        self.check(changed("deepseek-v3", n_shared_experts=2147483647),
                   "FILE: N of shared_experts.gate_up_proj, 2 * n_shared_experts * moe_intermediate_size / tp, is more "
                   "than 2147479551")

    def test_dense_layers(self):
        path = "qwen3-30b-a3b"
        self.check(changed(path, mlp_only_layers=0), "FILE: mlp_only_layers is no array")
        self.check(changed(path, mlp_only_layers=[1, 48]),
                   "FILE: an item of mlp_only_layers 48: allowed is a whole number from 0 to 47")
        self.check(changed(path, mlp_only_layers=["1"]),
                   "FILE: an item of mlp_only_layers is no number: allowed is a whole number from 0 to 47")
        for changes in ({"mlp_only_layers": [0]}, {"decoder_sparse_step": 2}):
            problems = self.accepted(changed(path, **changes))["problems"]
            dense = {p["weight"]: (p["n"], p["k"], p["place"]) for p in problems if p["weight"] in ("gate_up_proj", "router")}
            self.assertEqual(dense, {"gate_up_proj": (12288, 2048, "the layers without experts"),
                                     "router": (128, 2048, "the layers with experts")})

    def test_what_may_be_absent(self):
        """transformers' own rules: as many key-value heads as heads, no low-rank queries, no shared experts."""
        llama = self.accepted(changed("llama-3-8b", num_key_value_heads=None))["problems"]
        self.assertEqual(llama[0]["n"], 3 * 4096)
        weights = {p["weight"] for p in self.accepted(changed("deepseek-v3", n_shared_experts=0, first_k_dense_replace=0,
                                                              q_lora_rank=None))["problems"]}
        self.assertEqual(weights, {"q_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj", "router", "experts.gate_up_proj",
                                   "experts.down_proj", "lm_head"})
        dense = {p["weight"] for p in self.accepted(changed("deepseek-v3", first_k_dense_replace=61))["problems"]}
        self.assertEqual(dense & {"gate_up_proj", "router", "experts.down_proj", "shared_experts.down_proj"}, {"gate_up_proj"})

    def test_ignored_members(self):
        plain = self.accepted(changed("llama-3-8b"))
        odd = self.accepted(changed("llama-3-8b")[:-1] + ', "n_routed_experts": "x", "hidden_sizes": -1, "HIDDEN_SIZE": 0, '
                            '"x": 1, "x": 2, "rope": {"hidden_size": 0}}')
        self.assertEqual(plain, odd)

    def test_dtype(self):
        for member in ("torch_dtype", "dtype"):
            base = changed("llama-3-8b", torch_dtype=None)[:-1]
            rule = "allowed is bfloat16, float16"
            self.check(f'{base}, "{member}": "float32"}}',
                       f'FILE: {member} "float32": {rule}; --dtype says in which type it runs')
            self.check(f'{base}, "{member}": 16}}', f"FILE: {member} is no text: {rule}")
            self.assertEqual(self.accepted(f'{base}, "{member}": "float16"}}')["dtype"], "f16")
            self.assertEqual(self.accepted(f'{base}, "{member}": "float32"}}', "--dtype=bf16")["dtype"], "bf16")
        self.assertEqual(self.accepted(base + "}")["dtype"], "bf16")

    def test_padded_vocabulary(self):
        head = self.accepted(changed("llama-3-8b", vocab_size=32001), "--tp=4")["problems"][-1]
        self.assertEqual((head["n"], head["n_formula"]), (32064 // 4, "vocab_size, padded to a multiple of 64, / tp"))


class BadSplit(CliCase):
    def check(self, name, tp, message):
        path = config_of(name)
        self.refused("prewarm", "--model", path, "--m-max=1", f"--tp={tp}", message=f"{path}: {message}")

    def test_what_does_not_divide(self):
        rule = "is no multiple of --tp {}, among whose ranks it is divided"
        self.check("llama-3-8b", 3, "num_attention_heads 32 " + rule.format(3))
        self.check("qwen2-7b", 8, "num_attention_heads 28 " + rule.format(8))
        self.check("phi-4", 8, "num_key_value_heads 10 " + rule.format(8))
        self.check("deepseek-v3", 256, "num_attention_heads 128 " + rule.format(256))
        path = self.write("config.json", changed("llama-3-8b", intermediate_size=14340))
        self.refused("prewarm", "--model", path, "--tp=8", message=f"{path}: intermediate_size 14340 " + rule.format(8))
        path = self.write("config.json", changed("qwen3-30b-a3b", moe_intermediate_size=770))
        self.refused("prewarm", "--model", path, "--tp=4", message=f"{path}: moe_intermediate_size 770 " + rule.format(4))
        path = self.write("config.json", changed("deepseek-v2-lite", moe_intermediate_size=1409))
        self.refused("prewarm", "--model", path, "--tp=2", message=f"{path}: moe_intermediate_size 1409 " + rule.format(2))

    def test_copied_heads(self):
        path = self.write("config.json", changed("llama-3-8b", num_attention_heads=24, hidden_size=3072))
        self.refused("prewarm", "--model", path, "--tp=12",
                     message=f"{path}: --tp 12 is no multiple of num_key_value_heads 8, each of which equally many ranks copy")

    def test_vocabulary(self):
        path = self.write("config.json", changed("llama-3-8b", num_attention_heads=33, num_key_value_heads=33, hidden_size=4224,
                                                 intermediate_size=14421, vocab_size=100))
        self.refused("prewarm", "--model", path, "--tp=11",
                     message=f"{path}: vocab_size, padded to a multiple of 64, 128 is no multiple of --tp 11, among whose "
                             "ranks it is divided")


class BadOptions(CliCase):
    def test_values(self):
        path = config_of("llama-3-8b")
        for option, text, most in (("--tp", "0", 1024), ("--tp", "1025", 1024), ("--m-max", "0", 1048576),
                                   ("--m-max", "1048577", 1048576), ("--sms", "0", 1024), ("--sms", "x", 1024),
                                   ("--tp", "", 1024)):
            self.refused("prewarm", "--model", path, option, text,
                         message=f"{option} {text}: allowed is a whole number from 1 to {most}")
        for text in ("", "f32", "fp16", "BF16"):
            self.refused("prewarm", "--model", path, "--dtype", text, message=f"--dtype {text}: allowed is bf16, f16")
        self.refused("prewarm", "--model", path, "--shard", "0/1",
                     message="--shard 0/1: allowed is I/N with I from 1 to N and N up to 1000000")

    def test_without_a_model(self):
        for option in ("--tp=2", "--dtype=bf16", "--fp8", "--m-max=4", "--sms=132"):
            self.refused("prewarm", "--key", "tile=64x64", option,
                         message=f"{option.partition('=')[0]} goes with --model only")
