import ReelCore
import ReelNode

// The client's identity: a token in `hello` or in the handshake, and another one before the first expires.
extension SocketClient {
    /// Handles `hello`. A token in it takes precedence over the token of the handshake.
    func enter(_ frame: ClientFrame) {
        guard case .hello(let hello) = frame.body else { return }
        do throws(ReelError) {
            if let tokens, let token = hello.token {
                access = Access(try tokens.grant(token, from: origin), token: token, of: tokens)
            }
            guard let access else { throw ReelError(.unauthorized, "found no token, expected one in hello") }
            place = try gateway.context.limits.countConnection(of: access)
            takeFrames(of: settings.frameBytes)
            if hello.takesNodes { neighboursTold = gateway.neighbours.edition }
            sayWelcome(ref: frame.ref)
        } catch {
            refuseEntry(error, ref: frame.ref)
        }
    }

    /// Replaces the client's token. The new token must have the same subject, because the subject owns what was
    /// published before. Ends the subscriptions that the new token does not permit.
    func renew(_ token: String, _ access: Access, ref: [UInt8]?) {
        do throws(ReelError) {
            guard let tokens, let old = access.grant else { return sayWelcome(ref: ref) }
            let grant = try tokens.grant(token, from: origin)
            guard grant.subject.utf8.elementsEqual(old.subject.utf8) else {
                throw ReelError(.forbidden, "the new token is of another subject than the one before")
            }
            let renewed = Access(grant, token: token, of: tokens)
            self.access = renewed
            sayWelcome(ref: ref)
            for entry in gateway.fanOut.subscriptions.all(of: self) {
                guard let refusal = renewed.refusalToRead(entry.stream) else { continue }
                audit(refusal, "renew")
                gateway.fanOut.end(entry, refusal)
            }
        } catch {
            audit(error, "renew")
            refuse(ServerFrame.Failure(error), ref: ref)
        }
    }

    private var tokens: TokenGate? { gateway.context.settings.node.tokens }
}
