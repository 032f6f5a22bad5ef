import ReelCore

/// A strictly decoded token. No check that needs a key or a clock is done yet.
struct TokenParts {
    /// The maximum size of a token in bytes.
    static let largest = 8 << 10

    /// The member `alg` of the header.
    var algorithm = ""
    /// The member `kid` of the header.
    var keyID: String?
    var claims = TokenClaims()
    /// The signed bytes.
    let signed: [UInt8]
    let signature: [UInt8]

    init(_ token: [UInt8]) throws(TokenRefusal) {
        guard token.count <= Self.largest else { throw TokenRefusal("the token has more than \(Self.largest) bytes") }
        let parts = token.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3 else {
            throw TokenRefusal(
                "the token has not three parts; expected is a JWT, three parts parted by dots, as `reel token issue` "
                    + "prints"
            )
        }
        var decoded: [[UInt8]] = []
        for part in parts {
            guard let bytes = Base64URL.decode(part) else {
                throw TokenRefusal("a part of the token is no base64url in its canonical form without padding")
            }
            decoded.append(bytes)
        }
        signed = Array(token[..<parts[1].endIndex])
        signature = decoded[2]
        do throws(ReelError) {
            try decoded[0].withUnsafeBufferPointer { (bytes) throws(ReelError) in try readHeader(Bytes(bytes)) }
            try decoded[1].withUnsafeBufferPointer { (bytes) throws(ReelError) in try claims.read(Bytes(bytes)) }
        } catch {
            throw TokenRefusal(
                error.code == .badJSON ? "a part of the token is no JSON, or has a member twice" : error.message
            )
        }
        guard !algorithm.isEmpty else { throw TokenRefusal("the token has no \"alg\"") }
    }

    private mutating func readHeader(_ bytes: Bytes) throws(ReelError) {
        var reader = JSONReader(bytes, levels: 8, shape: .unauthorized)
        try reader.object { (reader, name) throws(ReelError) in
            switch name.string {
            case "alg": algorithm = try reader.string()
            case "kid": keyID = try reader.string()
            case "typ":
                guard ["jwt", "at+jwt"].contains(try reader.string().lowercased()) else {
                    throw reader.mismatch("the token's \"typ\" is neither JWT nor at+jwt")
                }
            case "crit": throw reader.mismatch("the token has \"crit\": nothing that it may demand is known here")
            default: try reader.skip()
            }
        }
        try reader.end()
    }
}

/// The claims of a token that a node uses; others are skipped.
struct TokenClaims {
    var subject: String?
    var expiresAt: Int64?
    var notBefore: Int64?
    var issuedAt: Int64?
    var issuer: String?
    var audience: [String] = []
    var hasStreams = false
    var read: [StreamPattern] = []
    var publish: [StreamPattern] = []
    var inspect: [StreamPattern] = []
    var admin: [StreamPattern] = []

    mutating func read(_ bytes: Bytes) throws(ReelError) {
        var reader = JSONReader(bytes, levels: 16, shape: .unauthorized)
        try reader.object { (reader, name) throws(ReelError) in
            switch name.string {
            case "sub": subject = try reader.string()
            case "exp": expiresAt = try reader.integer()
            case "nbf": notBefore = try reader.integer()
            case "iat": issuedAt = try reader.integer()
            case "iss": issuer = try reader.string()
            case "aud": audience = try Self.texts(&reader)
            case "reel":
                hasStreams = true
                try readStreams(&reader)
            default: try reader.skip()
            }
        }
        try reader.end()
    }

    /// Returns the grant of these claims for a subject.
    func grant(subject: String, expiresAt: Int64) -> TokenGrant {
        TokenGrant(
            subject: subject,
            expiresAt: expiresAt,
            read: read,
            publish: publish,
            inspect: inspect,
            admin: admin
        )
    }

    /// Reads a text, or a list of texts.
    private static func texts(_ reader: inout JSONReader) throws(ReelError) -> [String] {
        if try reader.kind() == .string { return [try reader.string()] }
        var texts: [String] = []
        try reader.array { (reader) throws(ReelError) in texts.append(try reader.string()) }
        return texts
    }

    private mutating func readStreams(_ reader: inout JSONReader) throws(ReelError) {
        try reader.object { (reader, name) throws(ReelError) in
            switch name.string {
            case "read": read = try Self.patterns(&reader)
            case "publish": publish = try Self.patterns(&reader)
            case "inspect": inspect = try Self.patterns(&reader)
            case "admin": admin = try Self.patterns(&reader)
            // A misspelled right must not look like a right that was not given.
            default:
                throw reader.mismatch(
                    "the token's \"reel\" has a member that is no right; expected are \"read\", \"publish\","
                        + " \"inspect\" and \"admin\""
                )
            }
        }
    }

    private static func patterns(_ reader: inout JSONReader) throws(ReelError) -> [StreamPattern] {
        var patterns: [StreamPattern] = []
        try reader.array { (reader) throws(ReelError) in
            guard let pattern = StreamPattern(try reader.string()) else {
                throw reader.mismatch(
                    "the token's \"reel\" has a pattern that is neither a stream's name nor a beginning and *"
                )
            }
            patterns.append(pattern)
        }
        return patterns
    }
}
