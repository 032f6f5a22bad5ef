internal import ReelCore

// Who the device is, to nodes that have keys.
extension SyncClient {
    /// So long `renewToken` may take.
    static let tokenMs: Int64 = 30_000

    /// `renewToken` was called, and has not answered.
    struct TokenQuestion {
        let task: Task<Void, Never>
        let deadline: any TransportRequest
    }

    /// Says hello, once there is a token to say.
    func enter() {
        guard renewToken != nil, token == nil else { return sayHello() }
        link?.awaitsToken = true
        askForToken()
    }

    private func sayHello() {
        link?.awaitsToken = false
        send(ClientFrame(.hello(.init(client: Self.name, token: token, takesNodes: true))))
    }

    /// A node did not take the token: another one is asked for before anything is said again; where a connection stands
    /// on an earlier one, before that expires.
    func tokenRefused() {
        guard renewToken != nil else { return }
        token = nil
        renewLater()
    }

    /// A second welcome answers `renew`: what the former token did not allow is tried again.
    func renewed(_ welcome: ServerFrame.Welcome) {
        note(.welcomed)
        renewLater(welcome)
        for stream in opened.values {
            if stream.outbox.isHeld {
                stream.outbox.release()
                stream.pollPauseMs = Self.pollMs
                markDirty(stream)
            }
            stream.allow()
        }
        arrangePlaces()
        for stream in opened.values { advance(stream) }
    }

    /// Asks for another token early enough that a slow answer, or the second one, still comes in time.
    func renewLater(_ welcome: ServerFrame.Welcome) {
        guard let seconds = welcome.tokenS else { return }
        link?.tokenEndsAtMs = transport.nowMs + Int64(clamping: min(seconds, Self.tokenSecondsMax)) * 1_000
        renewLater()
    }

    /// Asks for another token before the present one expires.
    func renewLater() {
        guard renewToken != nil, let endsAtMs = link?.tokenEndsAtMs else { return }
        let leftMs = endsAtMs - transport.nowMs
        guard leftMs > 0 else { return }
        link?.renewal?.cancel()
        link?.renewal = after(max(Self.renewalMsMin, leftMs / 5 * 4)) { $0.askForToken() }
    }

    /// Tokens that hold for a moment are not asked for all the time.
    private static let renewalMsMin: Int64 = 1_000
    /// Later than in a year nobody needs to be asked.
    private static let tokenSecondsMax = 365 * 86_400

    private func askForToken() {
        guard let renewToken, tokenQuestion == nil, !isClosed else { return }
        let task = Task { [weak self] in
            do {
                let token = try await renewToken()
                await self?.tokenCame(token)
            } catch {
                if !Task.isCancelled { await self?.noTokenCame("\(error)") }
            }
        }
        let deadline = after(Self.tokenMs) { client in
            task.cancel()
            client.noTokenCame("`renewToken` has not answered within \(Self.tokenMs / 1_000) s")
        }
        tokenQuestion = TokenQuestion(task: task, deadline: deadline)
    }

    private func answered() {
        tokenQuestion?.deadline.cancel()
        tokenQuestion = nil
    }

    /// Also for the connection after the one that it was asked for.
    private func tokenCame(_ token: String) {
        answered()
        guard takes(token) else { return goOnWithoutToken("its subject is not the user of this device") }
        note(.tokenCame)
        self.token = token
        if link?.awaitsToken == true {
            sayHello()
        } else if link?.welcome != nil {
            send(ClientFrame(.renew(token: token)))
        }
    }

    private func noTokenCame(_ reason: String) {
        answered()
        notify(.noToken(reason: reason))
        note(.noToken(reason))
        goOnWithoutToken(reason)
    }

    private func goOnWithoutToken(_ reason: String) {
        guard let link else { return }
        if link.awaitsToken { lost(link.number, "there is no token: \(reason)") } else { renewLater() }
    }
}
