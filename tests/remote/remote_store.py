# SPDX-License-Identifier: Apache-2.0
"""The remote cache against a real nginx, configured as docs/remote_cache.md says: remote_store.py REMOTE_TOOL

Exit status 77 without nginx."""
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

TOOL = None
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
NGINX = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin:" + os.path.join(ROOT, ".toolkit/bin"))
DOCUMENT = os.path.join(ROOT, "docs/remote_cache.md")
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
USER, PASSWORD = "build", "s3cret/@"
CREDENTIALS = "build:s3cret%2F%40@"
TOTAL_MS, RETRY_MS = 5000, 1500
TIMEOUT = 60  # seconds: whatever takes as long hangs

FRAME = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{server}
}}
"""


def documented_server():
    """The server block of the document."""
    with open(DOCUMENT, encoding="utf-8") as file:
        return re.search(r"^    server \{\n(?:    .*\n)*?    \}\n", file.read(), re.MULTILINE).group(0)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


class Tool:
    """A process that has one remote open."""

    def __init__(self, arguments, environment):
        self.messages = []
        self.process = subprocess.Popen(arguments, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def read(self):
        """The next line that is no message."""
        for line in self.process.stdout:
            if not line.startswith(("warning: ", "debug: ")):
                return line.rstrip("\n")
            self.messages.append(line.rstrip("\n"))
        return None

    def do(self, *words):
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()
        return self.read()

    def warnings(self):
        return [line for line in self.messages if line.startswith("warning: ")]

    def close(self):
        self.process.stdin.close()
        last = self.read()
        self.process.stdout.close()
        return last, self.process.wait(TIMEOUT)


class RemoteStore(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="gemmjit-remote.")
        self.addCleanup(shutil.rmtree, self.folder)
        self.port, self.server, self.random = free_port(), None, random.Random(1)
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.lower().endswith("_proxy")} | {"HOME": self.folder}
        os.mkdir(self.path("root"))
        with open(self.path("htpasswd"), "w", encoding="utf-8") as file:
            file.write(f"{USER}:{{PLAIN}}{PASSWORD}\n")
        self.addCleanup(self.stop)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def start(self, more=""):
        """Starts nginx; `more` goes behind its listen directive. Below /away it redirects to plain HTTP."""
        block = documented_server()
        away = f"        location /away/ {{ return 302 http://127.0.0.1:{self.port}/team/v1/a; }}\n"
        block = block[:-len("    }\n")] + away + "    }\n"
        for old, new in (("listen 8080;", f"listen 127.0.0.1:{self.port}{more};"), ("/srv/gemmjit", self.path("root")),
                         ("/etc/nginx/gemmjit.htpasswd", self.path("htpasswd"))):
            self.assertEqual(block.count(old), 1, block)
            block = block.replace(old, new)
        with open(self.path("nginx.conf"), "w", encoding="utf-8") as file:
            file.write(FRAME.format(folder=self.folder, server=block))
        with open(self.path("nginx.log"), "a", encoding="utf-8") as log:
            self.server = subprocess.Popen([NGINX, "-p", self.folder, "-c", self.path("nginx.conf"), "-e", "stderr"],
                                           stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        end = time.monotonic() + TIMEOUT
        while not listens(self.port):
            if self.server.poll() is not None or time.monotonic() > end:
                with open(self.path("nginx.log"), encoding="utf-8") as log:
                    self.fail(f"nginx does not start: {log.read()}")
            time.sleep(0.02)

    def stop(self):
        if self.server:
            self.server.terminate()
            self.server.wait(TIMEOUT)
            self.server = None

    def open(self, credentials="", upload=False, scheme="http", before=(), base="/team/v1/"):
        url = f"{scheme}://{credentials}127.0.0.1:{self.port}{base}"
        tool = Tool([*before, TOOL, url, str(int(upload)), str(TOTAL_MS), str(RETRY_MS)], self.environment)
        self.addCleanup(tool.process.wait)
        self.addCleanup(tool.process.stdout.close)
        self.addCleanup(tool.process.kill)
        self.addCleanup(tool.process.stdin.close)
        return tool

    def make_entry(self, size):
        """A file of random bytes; (path, bytes)."""
        data, path = self.random.randbytes(size), self.path(f"entry{size}")
        with open(path, "wb") as file:
            file.write(data)
        return path, data

    def put_one(self, name, size):
        path, data = self.make_entry(size)
        writer = self.open(CREDENTIALS, upload=True)
        self.assertEqual(writer.do("put", name, path), "queued")
        self.assertEqual(writer.close(), ("closed", 0))
        self.assertEqual(writer.messages, [])
        return data

    def check_hit(self, tool, name, data):
        self.assertEqual(tool.do("get", name, self.path("got")), f"hit {len(data)}", tool.messages)
        with open(self.path("got"), "rb") as file:
            self.assertEqual(file.read(), data)

    def test_round_trip(self):
        self.start()
        sizes = (1, 100_000, 5_000_000)
        writer = self.open(CREDENTIALS, upload=True)
        entries = {f"{size}.gjc": self.make_entry(size) for size in sizes}
        for name, (path, _) in entries.items():
            self.assertEqual(writer.do("put", name, path), "queued")
        self.assertEqual(writer.do("wait", "3"), "sent 3 dropped 0", writer.messages)
        reader = self.open()
        for name, (_, data) in entries.items():
            with open(self.path("root/team/v1", name), "rb") as file:
                self.assertEqual(file.read(), data)
            self.check_hit(reader, name, data)
            self.check_hit(writer, name, data)
        self.assertEqual(reader.do("get", "none.gjc", self.path("got")), "miss")
        self.assertEqual(reader.do("get", "../v1/1.gjc", self.path("got")), "failed")
        self.assertEqual(reader.do("counts"), "hits 3 misses 1 failures 1")
        self.assertEqual(len(reader.warnings()), 1)  # of the name
        self.assertEqual(writer.messages, [])
        self.assertEqual((reader.close(), writer.close()), (("closed", 0), ("closed", 0)))

    def test_who_may_not_write(self):
        """Uploads stop after one warning, fetches go on."""
        self.start()
        data = self.put_one("a", 1000)
        tool = self.open("build:wrong@", upload=True)
        for _ in range(2):
            tool.do("put", "b", self.path("entry1000"))
        self.assertEqual(tool.do("wait", "2"), "sent 0 dropped 2")
        self.check_hit(tool, "a", data)
        self.assertEqual(tool.close(), ("closed", 0))
        self.assertEqual(len(tool.messages), 1)
        self.assertIn("status 401", tool.messages[0])
        self.assertNotIn("wrong", tool.messages[0])
        self.assertEqual(os.listdir(self.path("root/team/v1")), ["a"])

    def test_netrc(self):
        with open(self.path(".netrc"), "w", encoding="utf-8") as file:
            file.write(f"machine 127.0.0.1 login {USER} password {PASSWORD}\n")
        self.start()
        path, _ = self.make_entry(1000)
        tool = self.open(upload=True)
        tool.do("put", "a", path)
        self.assertEqual(tool.do("wait", "1"), "sent 1 dropped 0")

    def test_restart(self):
        """A server that goes and comes back: one warning, a pause, and all is well again."""
        self.start()
        data = self.put_one("a", 100_000)
        tool = self.open(CREDENTIALS, upload=True)
        self.check_hit(tool, "a", data)
        self.stop()
        self.start()
        self.check_hit(tool, "a", data)  # the kept connection is gone, which nobody notices
        self.assertEqual(tool.messages, [])
        self.stop()
        for _ in range(3):
            self.assertEqual(tool.do("get", "a", self.path("got")), "failed")
        self.assertEqual(len(tool.messages), 1)
        self.assertIn("there is no connection", tool.messages[0])
        self.assertNotIn(USER, tool.messages[0])
        self.start()
        time.sleep(RETRY_MS / 1000 + 0.1)
        self.check_hit(tool, "a", data)
        tool.do("put", "b", self.path("entry100000"))
        self.assertEqual(tool.do("wait", "1"), "sent 1 dropped 0")
        self.assertEqual(len(tool.messages), 1)
        self.assertEqual(tool.close(), ("closed", 0))

    def test_redirect(self):
        self.start()
        data = self.put_one("a", 1000)
        self.check_hit(self.open(base="/away"), "b", data)

    def test_writers_of_one_name(self):
        """Readers meanwhile see one whole entry or the other."""
        self.start()
        whole = {}
        for size in (700_001, 900_001):
            path, data = self.make_entry(size)
            whole[size] = (path, data)
        writers = [(self.open(CREDENTIALS, upload=True), path) for path, _ in whole.values()]
        reader, num_hits = self.open(), 0
        for _ in range(20):
            for tool, path in writers:
                tool.do("put", "a", path)
            answer = reader.do("get", "a", self.path("got"))
            if answer != "miss":
                num_hits += 1
                with open(self.path("got"), "rb") as file:
                    self.assertEqual(file.read(), whole[int(answer.split()[1])][1])
        for tool, _ in writers:
            self.assertEqual(tool.do("wait", "20"), "sent 20 dropped 0")
            self.assertEqual(tool.messages, [])
        self.assertGreater(num_hits, 0)

    # ---- TLS ----

    def start_tls(self):
        if not shutil.which("openssl"):
            self.skipTest("no openssl to make a certificate with")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", self.path("key"), "-out", self.path("cert")],
                       check=True, capture_output=True)
        self.start(f" ssl; ssl_certificate {self.path('cert')}; ssl_certificate_key {self.path('key')}")

    def test_certificate_of_nobody(self):
        self.start_tls()
        tool = self.open(CREDENTIALS, upload=True, scheme="https")
        path, _ = self.make_entry(1000)
        for _ in range(3):
            self.assertEqual(tool.do("get", "a", self.path("got")), "failed")
            tool.do("put", "a", path)
        self.assertEqual(tool.do("wait", "3"), "sent 0 dropped 3")
        self.assertEqual(len(tool.warnings()), 1)
        self.assertIn("no TLS connection that can be trusted", tool.warnings()[0])
        self.assertEqual(os.listdir(self.path("root")), [])

    def test_no_tls_at_all(self):
        self.start()
        tool = self.open(scheme="https")
        self.assertEqual(tool.do("get", "a", self.path("got")), "failed")
        self.assertEqual(len(tool.warnings()), 1)
        self.assertIn("no TLS connection that can be trusted", tool.warnings()[0])

    def test_certificate_of_an_authority(self):
        """In a mount namespace where the system trusts the certificate."""
        self.start_tls()
        trust = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
                 f'mount --bind "{self.path("cert")}" {AUTHORITIES} && exec "$@"', "sh"]
        if not os.path.exists(AUTHORITIES) or not shutil.which("unshare") or subprocess.run(
                [*trust, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no mount namespace here")
        path, data = self.make_entry(3_000_000)
        tool = self.open(CREDENTIALS, upload=True, scheme="https", before=trust)
        tool.do("put", "a", path)
        self.assertEqual(tool.do("wait", "1"), "sent 1 dropped 0", tool.messages)
        self.check_hit(tool, "a", data)
        self.stop()
        self.start_tls_again()
        self.check_hit(tool, "a", data)
        self.assertEqual(tool.messages, [])
        self.assertEqual(tool.close(), ("closed", 0))

        away = self.open(scheme="https", before=trust, base="/away")
        self.assertEqual(away.do("get", "a", self.path("got")), "failed")
        self.assertEqual(len(away.messages), 1)
        self.assertIn("the answer cannot be used (status 302)", away.messages[0])

    def start_tls_again(self):
        """With the certificate that is there."""
        self.start(f" ssl; ssl_certificate {self.path('cert')}; ssl_certificate_key {self.path('key')}")


def main():
    global TOOL
    TOOL = os.path.abspath(sys.argv.pop(1))
    if not NGINX or subprocess.run([NGINX, "-v"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        print("no nginx here that runs: skipped")
        sys.exit(77)
    unittest.main(verbosity=2)


if __name__ == "__main__":
    main()
