# Loaded by the Python that runs MiniStack. Its answers to a function's runtime wait for the delayed acknowledgement of
# the packet before, 40 ms at each invocation, unless the sockets send at once.
import socketserver

socketserver.StreamRequestHandler.disable_nagle_algorithm = True
