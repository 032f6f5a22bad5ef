import Glibc
public import ReelCore
public import ReelNet
import Synchronization

/// Who may do what on a node that has keys: checks the tokens of all its loops with the keys of one file, which can be
/// read again while it serves. A connection that a token has opened stays until that token expires.
public final class TokenGate: Sendable {
    /// The file of the keys, a JWK Set.
    public let file: String
    private let verifier: Mutex<TokenVerifier>
    private let verified: Mutex<VerifiedTokens>
    private let wrong = WrongSignatures()
    /// How many tokens were refused.
    public let refused = RefusedTokens()

    /// Reads the file. Tokens have to be of this issuer and for this audience, where they are given. Throws, with the
    /// file's name, where it cannot be read or used.
    public init(file: String, issuer: String? = nil, audience: String? = nil) throws(TokenRefusal) {
        self.file = file
        var verifier = TokenVerifier(try Self.read(file))
        verifier.issuer = issuer
        verifier.audience = audience
        self.verifier = Mutex(verifier)
        verified = Mutex(VerifiedTokens())
    }

    /// True if the file has the secret half of a pair of keys: the node can then make tokens, which it never needs. A
    /// secret that has no public half (HS256) does not count.
    public var hasNeedlessSecrets: Bool { verifier.withLock { $0.keys.hasNeedlessSecrets } }

    /// Writes a warning to the journal if the file has a secret half.
    public func warnOfSecrets(_ logger: Logger) {
        guard hasNeedlessSecrets else { return }
        logger.warning(
            "the key file has a secret half",
            [
                "file": file,
                "detail": "a node needs only public halves: whoever reads this file, or takes over the node, can make"
                    + " tokens. Make a file by `reel token keygen --public FILE`, and name that with --jwks",
            ]
        )
    }

    /// Reads the file again. Throws as `init` does; then all stays as it is.
    public func reload() throws(TokenRefusal) {
        let keys = try Self.read(file)
        verifier.withLock { $0.keys = keys }
        verified.withLock { $0.forget() }
    }

    /// What a token of a client with this `SocketAddress.origin` gives now. Throws `unauthorized` with the reason, and
    /// `rate_limited` if clients of this origin have sent too many tokens with a wrong signature.
    public func grant(_ token: String, from origin: UInt64) throws(ReelError) -> TokenGrant {
        let nowMs = WallClock.nowMs()
        let now = nowMs / 1_000
        let (known, generation) = verified.withLock { ($0.grant(token, now: now), $0.generation) }
        if let known { return known }
        let verifier = verifier.withLock { $0 }
        let claim: TokenVerifier.Claim
        do throws(TokenRefusal) {
            claim = try verifier.claim(Array(token.utf8), now: now)
        } catch {
            refused.add(error.reason)
            throw ReelError(.unauthorized, error.description)
        }
        try wrong.take(origin, nowMs: nowMs)
        do throws(TokenRefusal) {
            let grant = try claim.verified()
            wrong.giveBack(origin)
            // Not where the keys were read again meanwhile: this token's may have gone.
            verified.withLock { if $0.generation == generation { $0.keep(token, grant) } }
            return grant
        } catch {
            refused.add(error.reason)
            throw ReelError(.unauthorized, error.description)
        }
    }

    /// How many tokens were refused unseen because of the wrong signatures of their origin.
    var limited: Int { wrong.limited }

    /// Removes the origins that have sent no wrong signature lately.
    func tick() { wrong.tick(nowMs: WallClock.nowMs()) }

    private static func read(_ file: String) throws(TokenRefusal) -> TokenKeys {
        let descriptor = open(file, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unreadable(file) }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while bytes.count <= TokenKeys.largestFile {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count == 0 { break }
            guard count > 0 else { throw unreadable(file) }
            bytes += chunk[..<count]
        }
        do throws(TokenRefusal) {
            return try TokenKeys(parsing: bytes)
        } catch {
            throw TokenRefusal("\(file): \(error.description)")
        }
    }

    private static func unreadable(_ file: String) -> TokenRefusal {
        TokenRefusal(
            "the key file \(file) cannot be read: \(String(cString: strerror(errno))); expected is a JWK Set, such as"
                + " `reel token keygen --public KEYS` prints: make one, or correct --jwks"
        )
    }
}

/// What somebody may do on this node: all that a token gives, or, where the node has no keys, everything.
public struct Access: Sendable {
    /// What the token gives; nil: everything.
    public let grant: TokenGrant?
    private let token: KeptToken?

    /// With what the token gives.
    public init(_ grant: TokenGrant?, token: String? = nil, of gate: TokenGate? = nil) {
        self.grant = grant
        self.token = token.map { KeptToken($0, gate) }
    }

    /// `Authorization` of what is asked of other nodes in its name; nil: the node has no keys.
    public var authorization: String? { token.map { "Bearer \($0.text)" } }

    /// What `Authorization: Bearer …` gives. Throws 401 where there is none, or one that is not valid; without a gate
    /// everything may be done and nothing is looked at.
    public init(_ gate: TokenGate?, _ head: HTTPRequestHead) throws(Problem) {
        guard let gate else {
            self.init(nil)
            return
        }
        let fields = head.headers.all("authorization")
        guard !fields.isEmpty else {
            gate.refused.add(.missing)
            throw Problem(.unauthorized, "found no token, expected Authorization: Bearer …")
        }
        guard fields.count == 1, let token = Self.bearer(fields[0]) else {
            gate.refused.add(.malformed)
            throw Problem(.unauthorized, "found another Authorization, expected Bearer and a token, once")
        }
        do throws(ReelError) {
            let origin = head.client?.origin ?? Payer.unknownOrigin
            self.init(try gate.grant(token, from: origin), token: token, of: gate)
        } catch {
            throw Problem(error)
        }
    }

    private static func bearer(_ field: String) -> String? {
        let parts = field.split(separator: " ", omittingEmptySubsequences: false)
        return parts.count == 2 && parts[0].lowercased() == "bearer" ? String(parts[1]) : nil
    }

    /// `by` of what is published.
    public var subject: String? { grant?.subject }

    /// Why the stream may not be read; nil if it may.
    public func refusalToRead(_ stream: StreamName) -> ReelError? {
        guard let grant, !grant.mayRead(stream) else { return nil }
        countRefusal()
        return ReelError(.forbidden, "the token does not give the stream \(stream) to read")
    }

    /// Why nothing may be published to the stream; nil if it may.
    public func refusalToPublish(_ stream: StreamName) -> ReelError? {
        guard let grant, !grant.mayPublish(stream) else { return nil }
        countRefusal()
        return ReelError(.forbidden, "the token does not give the stream \(stream) to publish to")
    }

    /// Returns true if the stream may be published to; counts nothing.
    public func mayPublish(_ stream: StreamName) -> Bool { grant?.mayPublish(stream) ?? true }

    /// Returns true if the sites of the stream may be listed.
    public func mayInspect(_ stream: StreamName) -> Bool { grant?.mayInspect(stream) ?? true }

    /// Throws 403 unless the sites of the stream may be listed.
    public func requireInspect(_ stream: StreamName) throws(Problem) {
        guard !mayInspect(stream) else { return }
        countRefusal()
        throw problem(
            ReelError(
                .forbidden,
                "the token does not give the right `inspect` for the stream \(stream), which listing its sites needs"
            )
        )
    }

    /// Throws 403 unless the sites of some stream may be listed.
    public func requireInspect() throws(Problem) {
        guard grant?.inspect.isEmpty ?? false else { return }
        countRefusal()
        throw problem(ReelError(.forbidden, "the token does not give the right `inspect`, which listing sites needs"))
    }

    /// True if the token gives the right `admin` for `*`, or the node has no keys.
    public var isAdmin: Bool { grant?.isAdmin ?? true }

    /// Throws 403 unless the token gives the right `admin` for `*`: what it is for belongs to no single stream.
    public func requireAdmin() throws(Problem) {
        guard !isAdmin else { return }
        countRefusal()
        throw problem(ReelError(.forbidden, "the token does not give the right `admin` for `*`, which this path needs"))
    }

    /// Counts a refusal for want of a right, and returns the problem that says so.
    func refusal(_ detail: String) -> Problem {
        countRefusal()
        return problem(ReelError(.forbidden, detail))
    }

    private func problem(_ refusal: ReelError) -> Problem {
        var problem = Problem(refusal)
        problem.subject = subject
        return problem
    }

    private func countRefusal() { token?.gate?.refused.add(.forbidden) }

    /// Throws 403 unless the stream may be read.
    public func requireRead(_ stream: StreamName) throws(Problem) {
        if let refusal = refusalToRead(stream) { throw problem(refusal) }
    }

    /// Throws 403 unless the stream may be published to.
    public func requirePublish(_ stream: StreamName) throws(Problem) {
        if let refusal = refusalToPublish(stream) { throw problem(refusal) }
    }

    /// Whether the token has expired at this moment, in milliseconds of the Unix epoch.
    public func hasExpired(nowMs: Int64) -> Bool {
        grant.map { nowMs / 1_000 >= $0.expiresAt } ?? false
    }
}

/// Most nodes have no keys: a reference takes little room.
private final class KeptToken: Sendable {
    let text: String
    let gate: TokenGate?

    init(_ text: String, _ gate: TokenGate?) {
        self.text = text
        self.gate = gate
    }
}
