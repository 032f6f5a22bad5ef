import CLibuv

// TLS between the handler and the kernel. Bytes are sealed only when the kernel can take more. So the backlog of a slow
// reader stays plain, in arrays that may be shared with other connections.
extension TCPConnection {
    /// The limit on the bytes that OpenSSL may produce on its own (responses to the peer's messages) while the peer
    /// reads nothing.
    private static let maxOwnBytes = 256 << 10

    /// Speaks TLS from now on. A client begins the handshake. Its handler's `secured` is called before any bytes, or
    /// `closed`.
    func secure(_ session: TLSSession) {
        tls = session
        if !session.isServer { advance(session, UnsafeRawBufferPointer(start: nil, count: 0)) }
    }

    /// Takes bytes from the kernel.
    func receivedSealed(_ bytes: Span<UInt8>, _ tls: TLSSession) {
        if tls.isFresh, bytes.count > 0, !Self.beginsTLS(bytes[0]) { return receivedPlain(tls) }
        bytes.withUnsafeBytes { advance(tls, $0) }
    }

    private func advance(_ tls: TLSSession, _ bytes: UnsafeRawBufferPointer) {
        do throws(NetError) {
            try tls.withInput(bytes) { () throws(NetError) in
                if !tls.isOpen {
                    try tls.shakeHands()
                    if tls.isOpen { handler?.secured() }
                }
                try deliver(tls)
            }
        } catch {
            return fail(tls, error)
        }
        queue.append(tls.takeOutput())
        guard queue.count <= Self.maxOwnBytes else {
            return close(NetError(.violation, "a peer asks for TLS answers without end and reads none"))
        }
        if pendingBytes > 0, !state.contains(.isClosed) { awaitFlush() }
        if tls.hasEnded { receivedLast() }
    }

    private func deliver(_ tls: TLSSession) throws(NetError) {
        let buffer = loop.openedBuffer
        while !isClosed {
            let count = try tls.read(into: buffer)
            guard count > 0 else { return }
            let plain = UnsafeRawBufferPointer(rebasing: buffer[..<count])
            handler?.received(Span(_unsafeElements: plain.bindMemory(to: UInt8.self)))
        }
    }

    /// Seals as much as one write takes, if no other bytes wait for the kernel. After the last byte of a finished
    /// connection it seals TLS's closure alert.
    ///
    /// - Returns: False if an error has closed the connection.
    func sealNext(_ tls: TLSSession) -> Bool {
        guard queue.count == 0 else { return true }
        do throws(NetError) {
            if tls.isOpen, tls.unsealed.count > 0 {
                try tls.sealNext(scratch: loop.writeBuffer)
            } else if state.contains(.isFinishing) {
                tls.sayEnd()
            }
        } catch {
            fail(tls, error)
            return false
        }
        queue.append(tls.takeOutput())
        return true
    }

    /// Closes a connection that ended without TLS's closure alert. Anyone on the path may have cut it, so the data may
    /// be truncated.
    func brokeOff(_ tls: TLSSession) {
        close(NetError(tls.isOpen ? .reset : .tls, "the peer broke off \(tls.isOpen ? "TLS" : "the TLS handshake")"))
    }

    /// Closes the connection after an error. The last bytes to the peer are the alert with the reason.
    private func fail(_ tls: TLSSession, _ error: NetError) {
        self.tls = nil
        queue.append(tls.takeOutput())
        flush()
        close(error)
    }

    /// True if `byte` begins a record of a handshake or an alert.
    private static func beginsTLS(_ byte: UInt8) -> Bool { byte == 0x16 || byte == 0x15 }

    private func receivedPlain(_ tls: TLSSession) {
        guard tls.isServer else {
            return close(NetError(.tls, "the server does not speak TLS on this port: http:// in place of https://?"))
        }
        self.tls = nil
        handler?.spokeWithoutTLS()
    }
}
