"""Starts LocalStack in this process, listening on 127.0.0.1 alone.

Outside of a container LocalStack listens on every address of the machine, whatever GATEWAY_LISTEN says.
"""

import sys

from twisted.internet import endpoints

_listen = endpoints.TCP4ServerEndpoint


def _listen_here(reactor, port, backlog=50, interface=""):
    return _listen(reactor, port, backlog, "127.0.0.1")


endpoints.TCP4ServerEndpoint = _listen_here

if __name__ == "__main__":
    from localstack.runtime.main import main

    sys.exit(main())
