# SPDX-License-Identifier: Apache-2.0
"""What network, user-space and full file systems are known for, one behaviour a test."""
import os
import subprocess

import cli_case
from cli_case import SMALL
from shim_case import ShimCase, tree, without

NO_LOCKS = ("ENOLCK", "ENOSYS", "EOPNOTSUPP", "EIO")


class Rows(ShimCase):
    def cold(self, rules, status=0, num_warnings=0):
        self.empty()
        return self.run_once(rules, status, num_warnings)

    def warm(self, rules, status=0, num_warnings=0):
        self.fill()
        return self.run_once(rules, status, num_warnings)

    def run_once(self, rules, status, num_warnings):
        """The document of a prewarm below the rules, after all that must hold was checked."""
        run = self.prewarm(rules, status=status)
        self.assertIn("!", [met for _, met, _ in self.calls()], "the rules met nothing")
        self.assertEqual(len(self.warnings(run[1])), num_warnings, run[1])
        left = tree(self.cache)
        self.check(run, rules)
        return run[0], left

    def lost(self, rules):
        """The kernel is in memory only: counted, one warning, and nothing of it is on disk."""
        told, left = self.cold(rules, status=1, num_warnings=1)
        self.assertEqual((told["compiled"], told["stats"]["disk_write_failures"]), (1, 1), rules)
        self.assertEqual(left, {}, rules)

    # -- Locks -------------------------------------------------------------------------------------------

    def test_no_locks(self):
        for error in NO_LOCKS:
            _, left = self.cold(f"lock:{error} flock:{error} unlock:{error}")
            self.assertEqual(left, self.whole, error)

    def test_many_without_locks(self):
        """Processes that cannot lock all compile; each publishes whole entries over those of the others."""
        self.empty()
        command = [cli_case.GEMMJIT, "prewarm", "-q", "--json", "--key", SMALL]
        environment = self.environment(self.shimmed("lock:ENOLCK flock:ENOLCK"))
        running = [subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.PIPE, text=True) for _ in range(12)]
        for process in running:
            self.assertEqual((process.communicate(timeout=60)[1], process.returncode), ("", 0))
        self.assertEqual(tree(self.cache), self.whole)
        self.check_next("")

    def test_interrupted_locks(self):
        told, left = self.cold("lock:EINTR:1-5 unlock:EINTR:1-5 flock:EINTR:1-5")
        self.assertEqual((told["stats"]["compiles"], left), (1, self.whole))
        self.assertIn(("flock", "-"), [call[:2] for call in self.calls()], "asked again until it was locked")

    # -- A full disk -------------------------------------------------------------------------------------

    def test_quota(self):
        for error in ("EDQUOT", "ENOSPC", "EIO"):
            self.lost(f"write:{error}")
            self.lost(f"write:short:1 write:{error}:2+")
            self.lost(f"fsync@.tmp-:{error}")
            self.lost(f"close@.tmp-:{error}")
            self.lost(f"open@.tmp-:{error}")

    def test_quota_that_only_close_tells(self):
        """File systems that cannot sync answer EINVAL or ENOSYS, or nothing; the close is what counts there."""
        for answer in ("EINVAL", "ENOSYS", "EOPNOTSUPP"):
            self.lost(f"fsync:{answer} close@.tmp-:EDQUOT")
            self.cold(f"fsync:{answer}")

    def test_quota_for_a_pack(self):
        pack = os.path.join(self.place, "x.gjp")
        for rules in ("write:EDQUOT", "fsync@.tmp-:EDQUOT", "close@.tmp-:EDQUOT", "rename:EBUSY"):
            self.fill()
            with open(pack, "w", encoding="utf-8") as file:
                file.write("old")
            told = self.under(rules, "cache", "pack", pack, status=1).err
            self.assertRegex(told, r"^gemmjit: [^\n]* cannot be written: the pack cannot be [^\n]*\n$")
            self.assertEqual(sorted(os.listdir(self.place)), ["cache", "x.gjp"])
            self.assertEqual(os.path.getsize(pack), 3)

    # -- Stale handles and names that are seen late ------------------------------------------------------

    def test_stale_once(self):
        """Another host replaced the file or the directory: the second look finds the new one."""
        for rules in ("open@.gjc:ESTALE:1-3", "read@.gjc:ESTALE:1", "fstat@.gjc:ESTALE:1-3", "open@v1/compilers:ESTALE:1",
                      "open:ESTALE:1-3"):
            told, _ = self.warm(rules)
            self.assertEqual((told["disk"], told["stats"]["disk_hits"], told["stats"]["damaged_entries"]), (1, 1, 0), rules)

    def test_stale_for_good(self):
        """A miss, with one warning, and not damage."""
        for rules in ("open@.gjc:ESTALE", "read@.gjc:ESTALE", "fstat@.gjc:ESTALE"):
            told, left = self.warm(rules, num_warnings=1)
            self.assertEqual((told["compiled"], told["stats"]["damaged_entries"]), (1, 0), rules)
            self.assertEqual(left, self.whole, rules)

    def test_unreadable(self):
        told, left = self.warm("read@.gjc:EIO", num_warnings=1)
        self.assertEqual((told["compiled"], told["stats"]["damaged_entries"]), (1, 1))
        self.assertEqual(left, self.whole)

    def test_seen_late(self):
        """What another process just published is looked for again under the lock, or compiled once more."""
        told, _ = self.warm("open@.gjc:ENOENT:1")
        self.assertEqual((told["disk"], told["compiled"]), (1, 0))
        for rules in ("open@.gjc:ENOENT", f"open@/{self.entry[3:5]}:ENOENT:1-2"):
            told, left = self.warm(rules)
            self.assertEqual((told["compiled"], told["stats"]["disk_misses"]), (1, 1), rules)
            self.assertEqual(left, self.whole, rules)

    def test_root_seen_late(self):
        """The root that another process makes meanwhile is there when it is looked at again."""
        for rules in ("stat:ENOENT:1", "stat:ENOENT:1-2", "stat:ENOENT:1-3", "open:ENOENT:1", "open:ENOENT:1-2", "open@v1:ENOENT:1-4"):
            told, left = self.warm(rules)
            self.assertEqual((told["disk"] + told["compiled"], left), (1, self.whole), rules)

    # -- Names -------------------------------------------------------------------------------------------

    def test_rename(self):
        for error in ("EBUSY", "ESTALE", "EDQUOT"):
            self.lost(f"rename:{error}")

    def test_rename_whose_answer_is_lost(self):
        told, left = self.cold("rename@.gjc:EIO/late", status=1, num_warnings=1)
        self.assertEqual(told["stats"]["disk_write_failures"], 1)
        self.assertEqual(list(left), [self.entry])

    def test_leftovers(self):
        """What cannot be removed after a failure is no entry, and goes with the next clear."""
        self.empty()
        rules = "write:EDQUOT unlink:EBUSY"
        self.check(self.prewarm(rules, status=1), rules, may_have=(".tmp-",))
        self.assertEqual(len(tree(self.cache)), 4)
        self.under("flock:nfs", "cache", "clear", status=0)
        self.assertEqual(tree(self.cache), {}, "an exclusive lock on NFS needs a descriptor that can write")

    def test_names_of_removed_files(self):
        """What the client of a network file system leaves in the directories is nobody's."""
        for verb in (("trim", "--max-size=0"), ("clear",)):
            self.fill()
            self.under("unlink:silly readdir:unknown", "cache", *verb, status=0)
            self.assertEqual(without(tree(self.cache), ".nfs", "compilers"), {})
            self.assertGreater(len(tree(self.cache)), 0)
            told = self.under("readdir:unknown", "cache", "stat", "--json", status=0).json()
            self.assertEqual((told["entries"], told["damaged"], told["temporary"]), (0, 0, 0))
            self.check_next("", may_have=(".nfs",))

    def test_trim_that_cannot_examine(self):
        """What was not looked at is not passed over in silence."""
        for error in ("EIO", "ESTALE"):
            self.fill()
            told = self.under(f"stat@.gjc:{error}:1", "cache", "trim", "--max-size=0", status=1).err
            self.assertRegex(told, r"^gemmjit: warning: [^\n]* not trimmed: [^\n]*\n"
                                   r"gemmjit: the cache in [^\n]* cannot be trimmed: [^\n]*\n$")
            self.assertEqual(tree(self.cache), self.whole)

    def test_no_modes(self):
        for error in ("ENOSYS", "EPERM", "EOPNOTSUPP"):
            _, left = self.cold(f"chmod:{error}")
            self.assertEqual(left, self.whole)

    # -- Short and interrupted transfers -----------------------------------------------------------------

    def test_short(self):
        _, left = self.cold("write:short read:short")
        self.assertEqual(left, self.whole)
        told, _ = self.warm("write:short read:short")
        self.assertEqual(told["disk"], 1)
        self.assertGreater(len([kind for kind, _, _ in self.calls() if kind == "read"]), 10)

    def test_interrupted(self):
        for kind in ("open", "read", "write", "fsync", "close"):
            for prepare in (self.cold, self.warm):
                if prepare == self.cold and kind == "read" or prepare == self.warm and kind in ("write", "fsync"):
                    continue
                _, left = prepare(f"{kind}:EINTR:1-7")
                self.assertEqual(left, self.whole, kind)

    # -- Packs -------------------------------------------------------------------------------------------

    def test_private_mapping_only(self):
        """Some file systems in user space cannot map a file that is to be shared."""
        pack = os.path.join(self.place, "x.gjp")
        self.fill()
        self.gemmjit("cache", "pack", pack)
        env = {**self.shimmed("mmap:unshared open@x.gjp:EINTR:1-5"), "GEMMJIT_CACHE_LAYERS": pack,
               "GEMMJIT_CACHE_DIR": os.path.join(self.place, "other")}
        told = self.gemmjit("prewarm", "--json", "-q", "--key", SMALL, env=env, err="").json()
        self.assertEqual((told["disk"], told["stats"]["layer_hits"]), (1, 1))
