"""The WebSocket cases of kosoku against `/debug/echo`, plain and by TLS."""

import asyncio
import contextlib
import ssl

import kosoku



# They want a smaller window of the server, which is declined: then there is nothing to try.
WITHOUT = ["13.3.*", "13.5.*"]
# What kosoku says of a case that it could not begin: its own message is text where its hash wants bytes.
NOT_BEGUN = "Strings must be encoded before hashing"


async def cases(address, without=()):
    """How many cases passed, and how many kosoku could not begin."""
    url = f"ws://{address}/debug/echo"
    try:
        results = await kosoku.run_fuzzingclient(url, exclude_cases=[*WITHOUT, *without], concurrency=2)
    except kosoku.FailureError as failure:
        results = failure.results
    failed = [case for case in results if not case.passed and case.result != NOT_BEGUN]
    assert not failed, ", ".join(f"{case.case_id}: {case.result}" for case in failed)
    passed = sum(case.passed for case in results)
    return passed, len(results) - passed


@contextlib.asynccontextmanager
async def unsealed(node, certificate):
    """A port that speaks plain and passes all on to a node that speaks TLS: kosoku knows no authorities."""
    trust = ssl.create_default_context(cafile=certificate)

    async def pass_on(reader, writer):
        # What the other side does not take any more is thrown away, to the end: if it were left, the kernel would
        # answer with a reset, and that takes from the sender what it has not read yet.
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                with contextlib.suppress(ConnectionError):
                    writer.write(data)
                    await writer.drain()

    async def accepted(reader, writer):
        far_reader, far_writer = await asyncio.open_connection(node.host, node.port, ssl=trust)

        async def there():
            await pass_on(reader, far_writer)
            far_writer.close()

        async def back():
            await pass_on(far_reader, writer)
            with contextlib.suppress(OSError):
                writer.write_eof()

        await asyncio.gather(there(), back())
        writer.close()

    async with await asyncio.start_server(accepted, "127.0.0.1", 0) as server:
        yield "127.0.0.1:%d" % server.sockets[0].getsockname()[1]


async def sealed_cases(node, certificate):
    async with unsealed(node, certificate) as address:
        # Packing does not know of TLS: once is enough.
        return await cases(address, ["12.*", "13.*"])


def check(cluster):
    passed, not_begun = asyncio.run(cases(cluster.gateway.address))
    yield f"kosoku found no fault in {passed} cases; it begins {not_begun} not, and {', '.join(WITHOUT)} do not apply"
    certificate, key = cluster.certificate()
    log = f"sqlite:{cluster.folder}/tls.sqlite"
    node = cluster.start("tls", "gateway", "--log", log, "--debug-echo", "--tls-cert", certificate, "--tls-key", key)
    passed, _ = asyncio.run(sealed_cases(node, certificate))
    yield f"nor in {passed} by TLS"
    assert cluster.stop(node) == 0
