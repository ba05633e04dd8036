"""Stands in for `java -jar DynamoDBLocal.jar`, which LocalStack starts for DynamoDB and which can't be had everywhere.

It starts the embedded table (SHARDCRON_EMBEDDED_TABLE names the program, which prints where it listens), and relays
the port that LocalStack has chosen to it. DynamoDBLocal's ARNs have the region `ddblocal`, which LocalStack puts the
real one in the place of; the embedded table's have `dynoxide`. Both are of one length, so a message stays as long as
it was.
"""

import http.client
import os
import signal
import subprocess
import sys
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

THEIRS, OURS = b":ddblocal:", b":dynoxide:"
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "x-amz-crc32"}


class Relay(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    table = None

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0))).replace(THEIRS, OURS)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
        connection = http.client.HTTPConnection(self.table)
        try:
            connection.request("POST", self.path, body, headers)
            answer = connection.getresponse()
            content = answer.read().replace(OURS, THEIRS)
        finally:
            connection.close()
        # Not by send_response, which adds a date of its own.
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST

    def log_message(self, *args):
        pass


def main(arguments):
    if "-jar" not in arguments:
        # LocalStack asks for the version.
        print('openjdk version "21.0.0" (a stand-in)', file=sys.stderr)
        return
    port = int(arguments[arguments.index("-port") + 1])
    table = subprocess.Popen([os.environ["SHARDCRON_EMBEDDED_TABLE"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    Relay.table = urllib.parse.urlsplit(table.stdout.readline().decode().strip()).netloc
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    ThreadingHTTPServer.daemon_threads = True
    ThreadingHTTPServer.request_queue_size = 1024
    # The table ends with its standard input, so that it outlives this process in no case.
    ThreadingHTTPServer(("127.0.0.1", port), Relay).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
