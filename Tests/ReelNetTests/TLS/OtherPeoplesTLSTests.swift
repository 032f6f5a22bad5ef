import Foundation
import Testing

@testable import ReelNet

/// Tests OpenSSL's own client, curl and Python against a TLS server. If one is not installed,
/// its test prints that and passes.
@Suite struct OtherPeoplesTLSTests {
    @Test("curl trusts the server only with the server's CA") func curlChecksCertificate() throws {
        guard let certificates = try Certificates(),
            try isThere("curl --version", "curl: apt-get install curl", certificates)
        else { return }
        let server = try secureServer(certificates)
        let url = "https://localhost:\(server.address.port)"
        for version in ["--tlsv1.2 --tls-max 1.2", "--tlsv1.3"] {
            let curl = "curl -sS \(version) --cacert ca.pem"
            #expect(try certificates.shell("\(curl) -d hello \(url)/echo") == "hello")
            let count = try certificates.shell("\(curl) '\(url)/stream?bytes=3000000' | wc -c")
            #expect(count.trimmingCharacters(in: .whitespacesAndNewlines) == "3000000")
        }
        #expect(try certificates.shell("curl -sS \(url)/echo 2>&1").contains("certificate"))
    }

    @Test("openssl finds versions names and no renegotiation") func opensslFindsVersionsNames() throws {
        guard let certificates = try Certificates() else { return }
        let server = try secureServer(certificates)
        /// Returns the output of the client. With `heard`, the client stays until its output contains that text.
        func client(_ options: String, says: String = "", until heard: String = "") throws -> String {
            let stay = "i=0; until grep -q '\(heard)' said || [ $i = 1000 ]; do sleep 0.1; i=$((i + 1)); done"
            let connect = "openssl s_client -connect \(server.address) -CAfile ca.pem \(options)"
            return try certificates.shell("> said; (printf '\(says)'; \(stay)) | \(connect) >> said 2>&1; cat said")
        }
        let request = "GET /echo HTTP/1.1\\r\\nhost: a\\r\\nconnection: close\\r\\n\\r\\n"
        let new = try client("-tls1_3 -alpn h2,http/1.1 -ign_eof", says: request)
        #expect(new.contains("TLSv1.3") && new.contains("ALPN protocol: http/1.1"))
        #expect(new.contains("Verify return code: 0") && new.contains("HTTP/1.1 200 OK"))
        let old = try client("-tls1_2 -no_ign_eof", says: "R\\n", until: "no renegotiation")
        #expect(old.contains("TLSv1.2") && old.contains("no renegotiation"))
        #expect(try client("-tls1_1 -cipher ALL@SECLEVEL=0").contains("protocol version"))
        #expect(try client("-alpn h2").contains("no application protocol"))
    }

    @Test("python websockets talks and sees the end") func pythonWebsocketsTalksAnd() throws {
        guard let certificates = try Certificates(),
            try isThere(
                "python3 -c 'import websockets'",
                "websockets of Python: pip install websockets",
                certificates
            )
        else { return }
        let server = try secureServer(certificates)
        let script = """
            import asyncio, socket, ssl, websockets
            trust = ssl.create_default_context(cafile="ca.pem")
            patient = {"open_timeout": 600, "close_timeout": 600, "ping_interval": None}
            async def main():
                url = "wss://localhost:\(server.address.port)/ws"
                async with websockets.connect(url, ssl=trust, max_size=None, **patient) as s:
                    for size in (0, 125, 65536, 3000000):
                        await s.send("x" * size)
                        assert await s.recv() == "x" * size, size
                assert s.close_code == 1000, s.close_code
            asyncio.run(main())
            # The end of the answer is said (close_notify), so that nobody can have cut it.
            plain = socket.create_connection(("localhost", \(server.address.port)))
            with trust.wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False) as s:
                s.sendall(b"GET /echo HTTP/1.1\\r\\nhost: a\\r\\nconnection: close\\r\\n\\r\\n")
                answer = b""
                while part := s.recv(4096): answer += part
                assert answer.startswith(b"HTTP/1.1 200"), answer
            print("fine")
            """
        try script.write(toFile: certificates.path("talk.py"), atomically: true, encoding: .utf8)
        #expect(try certificates.shell("python3 talk.py 2>&1") == "fine\n")
    }

    private func isThere(_ command: String, _ name: String, _ certificates: Certificates) throws -> Bool {
        if try certificates.shell("\(command) >/dev/null 2>&1 && echo yes") == "yes\n" { return true }
        print("NOT TESTED: found no \(name)")
        return false
    }
}
