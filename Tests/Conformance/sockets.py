"""The WebSocket cases of kosoku against `/debug/echo`, plain and by TLS."""

import asyncio
import contextlib
import ssl

import kosoku

# About permessage-deflate, which is not offered.
WITHOUT = ["12.*", "13.*"]


async def cases(address):
    return await kosoku.run_fuzzingclient(f"ws://{address}/debug/echo", exclude_cases=WITHOUT, concurrency=2)


@contextlib.asynccontextmanager
async def unsealed(node, certificate):
    """A port that speaks plain and passes all on to a node that speaks TLS: kosoku knows no authorities."""
    trust = ssl.create_default_context(cafile=certificate)

    async def pass_on(reader, writer):
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        with contextlib.suppress(ConnectionError):
            writer.close()

    async def accepted(reader, writer):
        far_reader, far_writer = await asyncio.open_connection(node.host, node.port, ssl=trust)
        await asyncio.gather(pass_on(reader, far_writer), pass_on(far_reader, writer))

    async with await asyncio.start_server(accepted, "127.0.0.1", 0) as server:
        yield "127.0.0.1:%d" % server.sockets[0].getsockname()[1]


async def sealed_cases(node, certificate):
    async with unsealed(node, certificate) as address:
        return await cases(address)


def check(cluster):
    results = asyncio.run(cases(cluster.gateway.address))
    yield f"kosoku found no fault in {len(results)} cases; {', '.join(WITHOUT)} do not apply"
    certificate, key = cluster.certificate()
    log = f"sqlite:{cluster.folder}/tls.sqlite"
    node = cluster.start("tls", "gateway", "--log", log, "--debug-echo", "--tls-cert", certificate, "--tls-key", key)
    results = asyncio.run(sealed_cases(node, certificate))
    yield f"nor in {len(results)} by TLS"
    assert cluster.stop(node) == 0
