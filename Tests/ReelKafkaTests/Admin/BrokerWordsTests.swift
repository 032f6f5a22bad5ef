import Testing

@testable import ReelKafka

/// Tests the sentences for operators that are made from librdkafka's errors about brokers.
@Suite struct BrokerWordsTests {
    @Test(
        "a broker error becomes one sentence",
        arguments: [
            (
                "127.0.0.1:1/bootstrap: Connect to ipv4#127.0.0.1:1 failed: Connection refused (after 0ms in state CONNECT)",
                "127.0.0.1:1: Connection refused", false
            ),
            (
                "nohost:9092/bootstrap: Failed to resolve 'nohost:9092': Name or service not known (after 0ms in state CONNECT)",
                "nohost:9092: Failed to resolve 'nohost:9092': Name or service not known", false
            ),
            (
                "ssl://a:1/bootstrap: SSL handshake failed: error:0A000086:SSL routines::certificate verify failed: broker certificate could not be verified (after 3ms in state SSL_HANDSHAKE)",
                "the certificate of a:1 is not signed by a CA that is known here", true
            ),
            (
                "ssl://a:1/bootstrap: SSL handshake failed: error:0A000126:SSL routines::unexpected eof while reading (after 1ms in state SSL_HANDSHAKE)",
                "TLS with a:1 fails (unexpected eof while reading); expected is", true
            ),
            (
                "ssl://a:1/bootstrap: Receive failed: ../ssl/record/rec_layer_s3.c:1602:ssl3_read_bytes error:0A000416:SSL"
                    + " routines::sslv3 alert certificate unknown: SSL alert number 46 (after 3ms in state APIVERSION_QUERY)",
                "a:1 does not let this client in (sslv3 alert certificate unknown: SSL alert number 46); expected is",
                true
            ),
            (
                "sasl_ssl://a:1/bootstrap: SASL authentication error: Authentication failed: Invalid username or password (after 3ms in state AUTH_REQ)",
                "a:1 refuses the login (SASL authentication error: Authentication failed: Invalid username or password)",
                true
            ),
            (
                "a:1/bootstrap: Receive failed: Invalid response size 1213486160 (0..100000000): increase receive.message.max.bytes",
                "an HTTP server answers at a:1", true
            ),
            (
                "a:1/bootstrap: ApiVersionRequest failed: Local: Timed out: probably due to broker version < 0.10 (see api.version.request configuration) (after 4002ms in state APIVERSION_QUERY)",
                "a:1 takes the connection and does not answer", false
            ),
            (
                "a:1/bootstrap: Disconnected while requesting ApiVersion: might be caused by incorrect security.protocol configuration (connecting to a SSL listener?) or broker version is < 0.10 (see api.version.request) (after 2ms in state APIVERSION_QUERY)",
                "a:1 closes the connection at the first request", false
            ),
            ("1/1 brokers are down", "1/1 brokers are down", false),
            ("", "", false),
            (
                "sasl_plaintext://a:1/bootstrap: SASL PLAIN mechanism handshake failed: Broker: Request not valid in current"
                    + " SASL state: broker's supported mechanisms:  (after 2ms in state AUTH_HANDSHAKE)",
                "a:1 asks for no login", true
            ),
            (
                "ssl://a:1/bootstrap: Disconnected: verify that security.protocol is correctly configured, broker might"
                    + " require SASL authentication (after 9ms in state UP)",
                "a:1 hangs up before the first answer: it wants a login", true
            ),
        ]
    ) func describesBrokerError(reason: String, says: String, lasts: Bool) {
        let trouble = BrokerTrouble(reason)
        #expect(trouble.text.hasPrefix(says), "\(trouble.text)")
        #expect(trouble.isLasting == lasts)
    }

    @Test("a login error recommends a newer librdkafka only for a mechanism that the library implements wrongly")
    func namesFaultyMechanism() {
        func told(_ mechanism: String, strict: Bool) -> Bool {
            let reason =
                "sasl_ssl://a:1/bootstrap: SASL authentication error: Authentication failed during authentication due to"
                + " invalid credentials with SASL mechanism \(mechanism) (after 3ms in state AUTH_REQ)"
            let text = BrokerTrouble(reason, hasStrictSCRAM: strict).text
            #expect(text.hasPrefix("a:1 refuses the login"))
            return text.contains("librdkafka 2.6.1 or newer")
        }
        #expect(told("SCRAM-SHA-512", strict: false))
        #expect(!told("SCRAM-SHA-512", strict: true) && !told("PLAIN", strict: false))
    }

    @Test(
        "a brokers age shows in the requests that it takes",
        arguments: [
            (
                "APIVERSION: [thrd:a:1/bootstrap]: a:1/bootstrap:   ApiKey Fetch (1) Versions 4..18", 18, true,
                "3.9 or newer"
            ),
            ("[thrd:sasl_ssl://a:1/7]: sasl_ssl://a:1/7:   ApiKey Fetch (1) Versions 0..16", 16, true, "3.7 to 3.8"),
            ("a:1/1:   ApiKey Fetch (1) Versions 0..15", 15, false, "3.5 to 3.6"),
            ("a:1/1:   ApiKey Fetch (1) Versions 0..11", 11, false, "2.3 to 2.6"),
        ]
    ) func aBrokersAgeShows(line: String, fetch: Int, isEnough: Bool, releases: String) throws {
        let version = try #require(BrokerVersion(line: line))
        #expect(version.broker == "a:1")
        #expect(version.fetch == fetch)
        #expect(version.isEnough == isEnough)
        #expect(version.releases == releases)
    }

    @Test(
        "a line without a valid API version range gives no broker version",
        arguments: [
            "", "ApiKey Produce (0) Versions 0..11", "ApiKey Fetch (1) Versions ", "ApiKey Fetch (1) Versions 1..x",
        ]
    )
    func ignoresOtherLines(line: String) {
        #expect(BrokerVersion(line: line) == nil)
    }
}
