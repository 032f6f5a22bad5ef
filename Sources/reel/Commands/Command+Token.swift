import ReelCore
import ReelNet
import ReelNode

extension Command {
    /// Makes a key.
    static let tokenKeys = Command(
        "token keygen",
        "make a key for tokens",
        about: """
            Prints a JWK Set with one new key, secret half and all: keep it where only the one who makes tokens can
            read it. Nodes need the public half alone, which --public prints of a file; a file may hold several keys,
            so that a new one can come before the old one goes. HS256 keys have no halves, and --public leaves them
            out: nodes that can check can make.
            """,
        settings: [algorithm, keyID, publicHalf],
        examples: [
            Example("umask 077; reel token keygen > keys.json", "a new Ed25519 key"),
            Example("reel token keygen --public keys.json > public.json", "what nodes take as --jwks"),
        ]
    ) { options, console in
        if let file = options[publicHalf] {
            guard options[algorithm] == nil, options[keyID] == nil else {
                throw CommandError(.usage, "--public makes no key; expected is neither --alg nor --kid beside it")
            }
            let keys = try keys(file)
            guard keys.keys.contains(where: { $0.key.algorithm != .hs256 }) else {
                throw CommandError(.badData, "an HS256 key has no public half; nodes need `\(file)` itself")
            }
            let left = keys.keys.filter { $0.key.algorithm == .hs256 }
            if !left.isEmpty {
                let names = left.map { $0.id.map { "`\($0)`" } ?? "one without kid" }.joined(separator: ", ")
                console.note(
                    "reel: warning: HS256 keys have no public half and are left out: \(names); a node that is to take"
                        + " their tokens needs `\(file)` itself"
                )
            }
            try console.write(keys.text(withSecrets: false).utf8)
            return .done
        }
        let name = options[algorithm] ?? SignatureKey.Algorithm.edDSA.rawValue
        guard let kind = SignatureKey.Algorithm(rawValue: name) else {
            throw CommandError(.usage, "--alg is `\(name)`; expected is EdDSA, ES256 or HS256")
        }
        guard let key = SignatureKey.random(kind) else { throw CommandError(.failed, "the system gives no randomness") }
        let id = options[keyID] ?? Hex64.text(.random(in: .min ... .max))
        try console.write(TokenKeys([TokenKey(id: id, key: key)]).text(withSecrets: true).utf8)
        return .done
    }

    /// Makes a token.
    static let tokenMake = Command(
        "token issue",
        "make a token that gives rights to streams",
        about: """
            Prints a token, signed by the first key of the file. A pattern is a stream's name, or with * at the end all
            names that begin so. Whoever has the token has what it gives until it expires. No right includes another:
            --inspect lets its bearer list the sites of a stream. --admin `*` gives the paths of operators:
            metrics, cluster and the detail of health. Nodes of an older build refuse a token with one of these two:
            update the nodes first.
            """,
        settings: [
            ServingArguments.keys.saying("sign with a key of this file, a JWK Set as `reel token keygen` prints it"),
            keyID.saying("sign with the key of this name; else with the first"), subject, read, publishing, inspecting,
            administering, lifetime,
            ServingArguments.issuer.saying("write this `iss` into the token: who has made it"),
            ServingArguments.audience.saying("write this `aud` into the token: whom it is for"),
        ],
        required: [ServingArguments.keys, subject],
        examples: [
            Example(
                "reel token issue --jwks keys.json --sub ann --read 'todo-*' --publish todo-7 --for 3600",
                "an hour for ann"
            ),
            Example(
                "reel token issue --jwks keys.json --sub operator --read '*' --inspect '*' --admin '*'",
                "an hour for an operator: `reel site list`, `reel cluster` and `reel doctor`"
            ),
        ]
    ) { options, console in
        let file = try options.required(ServingArguments.keys)
        let subject = try options.required(subject)
        let all = try keys(file).keys
        let wanted = options[keyID]
        guard let key = all.first(where: { wanted == nil || $0.id == wanted }) else {
            let names = all.map { $0.id.map { "`\($0)`" } ?? "one without a kid" }.joined(separator: ", ")
            throw CommandError(
                .usage,
                "found no key with the kid `\(wanted ?? "")` in `\(file)`, expected one of \(names): correct --kid, or"
                    + " leave it out to sign with the first key"
            )
        }
        let now = WallClock.nowMs() / 1_000
        var mint = TokenMint(key)
        mint.issuer = options[ServingArguments.issuer]
        mint.audience = options[ServingArguments.audience]
        if [read, publishing, inspecting, administering].allSatisfy({ options[$0].isEmpty }) {
            console.note(
                "reel: warning: the token gives no right; --read, --publish, --inspect and --admin name the streams"
            )
        }
        if options[administering].contains(where: { $0 != "*" }) {
            console.note("reel: warning: --admin has an effect only as '*': what it opens belongs to no single stream")
        }
        let grant = TokenGrant(
            subject: subject,
            expiresAt: now + Int64(options[lifetime]),
            read: try patterns(options[read]),
            publish: try patterns(options[publishing]),
            inspect: try patterns(options[inspecting]),
            admin: try patterns(options[administering])
        )
        guard let token = mint.token(grant, now: now) else {
            throw CommandError(
                .badData,
                "found only the public half of the key in `\(file)`, which cannot sign, expected the secret half: name"
                    + " with --jwks the file that `reel token keygen` printed"
            )
        }
        if let refusal = refusal(of: Array(token.utf8), TokenVerifier(TokenKeys([key])), now: now) {
            throw CommandError(.usage, "nobody would take that: \(refusal)")
        }
        try console.print(token)
        return .done
    }

    /// Explains a token.
    static let tokenShow = Command(
        "token inspect",
        "say what a token gives, and whether these keys take it",
        about: """
            Reads the token from a file or standard input, so that it stands in no list of processes. Prints what it
            gives, also of one that is refused; the token itself and its signature are not repeated.
            """,
        operands: [Operand("FILE", .optional)],
        settings: [
            ServingArguments.keys.saying("check it with the keys of this file, a JWK Set"), ServingArguments.issuer,
            ServingArguments.audience,
        ],
        required: [ServingArguments.keys],
        examples: [Example("reel token inspect --jwks public.json < token", "whether nodes with these keys take it")]
    ) { options, console in
        let file = try options.required(ServingArguments.keys)
        var verifier = TokenVerifier(try keys(file))
        verifier.issuer = options[ServingArguments.issuer]
        verifier.audience = options[ServingArguments.audience]
        var token = try InputFile.read(options.operands.first ?? "-")
        while let last = token.last, last == 0x0A || last == 0x0D { token.removeLast() }
        let now = WallClock.nowMs() / 1_000
        if let grant = TokenVerifier.claims(of: token) {
            let left = grant.expiresAt - now
            try console.print("subject  \(grant.subject)")
            try console.print("expires  \(left > 0 ? "in \(left) s" : "\(-left) s ago")")
            try console.print("read     \(grant.read.map(\.description).joined(separator: " "))")
            try console.print("publish  \(grant.publish.map(\.description).joined(separator: " "))")
            for (right, patterns) in [("inspect", grant.inspect), ("admin  ", grant.admin)] where !patterns.isEmpty {
                try console.print("\(right)  \(patterns.map(\.description).joined(separator: " "))")
            }
        }
        if let refusal = refusal(of: token, verifier, now: now) { throw CommandError(.badData, refusal) }
        return .done
    }

    /// Why the token is refused; nil: it is taken.
    private static func refusal(of token: [UInt8], _ verifier: TokenVerifier, now: Int64) -> String? {
        do throws(TokenRefusal) {
            _ = try verifier.verify(token, now: now)
            return nil
        } catch {
            return error.description
        }
    }

    private static func keys(_ file: String) throws(CommandError) -> TokenKeys {
        let bytes: [UInt8]
        do throws(CommandError) {
            bytes = try InputFile.read(file)
        } catch {
            throw CommandError(
                error.code,
                "the key file \(error.message); expected is a JWK Set: correct the path, or make a file by `reel token"
                    + " keys`"
            )
        }
        do throws(TokenRefusal) {
            return try TokenKeys(parsing: bytes)
        } catch {
            throw CommandError(.badData, "`\(file)`: \(error.description)")
        }
    }

    private static func patterns(_ texts: [String]) throws(CommandError) -> [StreamPattern] {
        try texts.map { text throws(CommandError) in
            guard let pattern = StreamPattern(text) else {
                throw CommandError(.usage, "`\(text)` is no pattern; expected is a stream's name, or a beginning and *")
            }
            return pattern
        }
    }

    private static let algorithm = Setting<String?>.text("alg", "ALG", otherwise: "EdDSA", "EdDSA, ES256 or HS256")
    private static let keyID = Setting<String?>.text("kid", "NAME", "the key's name; else one by chance")
    private static let publicHalf = Setting<String?>.text(
        "public",
        "FILE",
        "print the public half of this file instead"
    )
    private static let subject = Setting<String?>.text(
        "sub",
        "NAME",
        "whom it is for: `by` of what is published with it"
    )
    private static let read = Setting<[String]>.texts("read", "PATTERN", "streams to read")
    private static let publishing = Setting<[String]>.texts("publish", "PATTERN", "streams to publish to")
    private static let inspecting = Setting<[String]>.texts("inspect", "PATTERN", "streams whose sites may be listed")
    private static let administering = Setting<[String]>.texts(
        "admin",
        "PATTERN",
        "`*` gives metrics, cluster and the detail of health; others give nothing"
    )
    private static let lifetime = Setting<Int>.number(
        "for",
        "SECONDS",
        1...(10 * 366 * 86_400),
        default: 3_600,
        "how long it is valid"
    )
}
