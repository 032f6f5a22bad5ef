import CLibuv

// TLS between the handler and the kernel. Sealing waits until the kernel can take more, so what a slow reader has not
// read waits plain, in arrays that it may share with others.
extension TCPConnection {
    /// Bytes that OpenSSL may make by itself (answers to the peer's messages) while the peer reads nothing.
    private static let maxOwnBytes = 256 << 10

    /// Speaks TLS from now on. A client begins; its handler hears `secured`, before any bytes, or `closed`.
    func secure(_ session: TLSSession) {
        tls = session
        if !session.isServer { advance(session, UnsafeRawBufferPointer(start: nil, count: 0)) }
    }

    /// Takes bytes from the kernel.
    func receivedSealed(_ bytes: Span<UInt8>, _ tls: TLSSession) {
        if tls.isFresh, bytes.count > 0, !Self.beginsTLS(bytes[0]) { return metPlain(tls) }
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

    /// Seals as much as one write takes, once nothing else waits for the kernel; behind the last byte of a finished
    /// connection the word that it is the last. False if that has closed the connection.
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

    /// Without the word of its end, what the peer has sent may be cut short: by anybody on the way.
    func brokeOff(_ tls: TLSSession) {
        close(NetError(tls.isOpen ? .reset : .tls, "the peer broke off \(tls.isOpen ? "TLS" : "the TLS handshake")"))
    }

    /// An alert that tells the peer why is the last that it gets.
    private func fail(_ tls: TLSSession, _ error: NetError) {
        self.tls = nil
        queue.append(tls.takeOutput())
        flush()
        close(error)
    }

    /// A record of a handshake or an alert.
    private static func beginsTLS(_ byte: UInt8) -> Bool { byte == 0x16 || byte == 0x15 }

    private func metPlain(_ tls: TLSSession) {
        guard tls.isServer else {
            return close(NetError(.tls, "the server does not speak TLS on this port: http:// in place of https://?"))
        }
        self.tls = nil
        handler?.spokeWithoutTLS()
    }
}
