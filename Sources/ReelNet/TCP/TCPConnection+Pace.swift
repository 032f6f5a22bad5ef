import CLibuv

// The progress of the peer. The peer has taken the bytes that its kernel has acknowledged. A completed write says far
// less: this side's kernel holds megabytes, and takes more only after a third of them is gone.
extension TCPConnection {
    /// The number of bytes written since the start, with the overhead of TLS.
    var writtenBytes: Int { passed + queue.count + (tls?.unsealed.count ?? 0) }

    /// The number of written bytes that the peer has not acknowledged. It asks the kernel, so it is meant for the
    /// moment when a deadline is about to pass.
    var unacknowledgedBytes: Int {
        let waiting = writtenBytes - passed
        guard let descriptor else { return waiting }
        return waiting + Int(uv_stream_get_write_queue_size(stream)) + Int(max(0, reel_unacknowledged(descriptor)))
    }

    /// Checks that the peer has taken enough since the previous check.
    func checkReadingPace() -> SlowReaderDetector.Finding {
        pace.look(written: writtenBytes, left: unacknowledgedBytes)
    }
}
