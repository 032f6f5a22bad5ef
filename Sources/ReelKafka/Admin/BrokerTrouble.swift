/// The reason why a broker cannot be used, in words for an operator, derived from librdkafka's text.
struct BrokerTrouble: Equatable {
    let text: String
    /// True if a retry would fail with the same reason.
    let isLasting: Bool

    /// Creates the reason from a text such as `ssl://127.0.0.1:9093/bootstrap: SSL handshake failed: … (after 3ms in
    /// state …)`.
    init(_ reason: String, hasStrictSCRAM: Bool = KafkaLibrary.hasStrictSCRAM) {
        let (broker, said) = Self.parts(of: reason)
        if said.contains("certificate verify failed") {
            text =
                "the certificate of \(broker) is not signed by a CA that is known here;"
                + " --kafka.ssl.ca.location must name its CA's certificate"
            isLasting = true
        } else if said.contains("SSL routines"), said.contains("alert"), said.contains("certificate") {
            text =
                "\(broker) does not let this client in (\(Self.lastWords(of: said))); expected is a certificate in"
                + " --kafka.ssl.certificate.location that is signed by a CA that it knows"
            isLasting = true
        } else if said.contains("SSL handshake failed") {
            text =
                "TLS with \(broker) fails (\(Self.lastWords(of: said))); expected is a listener with TLS, which takes"
                + " the certificate of --kafka.ssl.certificate.location if it asks for one"
            isLasting = true
        } else if said.contains("not valid in current SASL state") {
            text = "\(broker) asks for no login; expected is --kafka.security.protocol=plaintext, or ssl"
            isLasting = true
        } else if said.contains("might require SASL") {
            text =
                "\(broker) hangs up before the first answer: it wants a login; expected is"
                + " --kafka.security.protocol=sasl_ssl, or sasl_plaintext, with a user name and a password"
            isLasting = true
        } else if said.contains("mechanism handshake failed") {
            text = "\(broker) does not take the login's mechanism (\(said)); see --kafka.sasl.mechanisms"
            isLasting = true
        } else if said.contains("SASL"), said.contains("uthentication") {
            text =
                "\(broker) refuses the login (\(said)); expected are --kafka.sasl.username and"
                + " REEL_KAFKA_SASL_PASSWORD of a user that it knows"
                + (said.contains("SCRAM") && !hasStrictSCRAM
                    ? ", and for SCRAM with Kafka 4 librdkafka 2.6.1 or newer; this is \(KafkaLibrary.version)" : "")
            isLasting = true
        } else if said.contains("Invalid response size 1213486160") {
            // These are the first four bytes of `HTTP/1.1`, read as a length.
            text = "an HTTP server answers at \(broker); expected is the port of a Kafka broker"
            isLasting = true
        } else if said.contains("ApiVersion"), said.contains("Timed out") {
            text = "\(broker) takes the connection and does not answer: a broker that hangs, or another kind of server"
            isLasting = false
        } else if said.contains("while requesting ApiVersion") {
            text =
                "\(broker) closes the connection at the first request: another kind of server,"
                + " or a listener with TLS (--kafka.security.protocol=ssl)"
            isLasting = false
        } else if let colon = said.firstRange(of: " failed: "), said.hasPrefix("Connect to ") {
            text = "\(broker): \(said[colon.upperBound...])"
            isLasting = false
        } else {
            text = broker.isEmpty ? said : "\(broker): \(said)"
            isLasting = false
        }
    }

    /// Returns OpenSSL's reason alone, without its files and functions.
    private static func lastWords(of said: String) -> Substring {
        said.ranges(of: "::").last.map { said[$0.upperBound...] } ?? said[...]
    }

    /// Returns the broker's address, and the text about it.
    private static func parts(of reason: String) -> (broker: String, said: String) {
        let said = reason.firstRange(of: " (after ").map { reason[..<$0.lowerBound] } ?? reason[...]
        guard let colon = said.firstRange(of: ": "), let slash = said[..<colon.lowerBound].lastIndex(of: "/")
        else { return ("", String(said)) }
        let broker = said[..<slash]
        let address = broker.firstRange(of: "://").map { broker[$0.upperBound...] } ?? broker
        return (String(address), String(said[colon.upperBound...]))
    }
}
