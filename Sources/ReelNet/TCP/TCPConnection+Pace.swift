import CLibuv

// How the far side does. It has taken what its kernel has acknowledged: a write that is done says far less, since the
// own kernel holds megabytes and takes more only once a third of them is gone.
extension TCPConnection {
    /// Bytes written so far, with what TLS adds.
    var writtenBytes: Int { passed + queue.count + (tls?.unsealed.count ?? 0) }

    /// How many of them the far side has not taken. It asks the kernel: for when a deadline is about to strike.
    var unacknowledgedBytes: Int {
        let waiting = writtenBytes - passed
        guard let descriptor else { return waiting }
        return waiting + Int(uv_stream_get_write_queue_size(stream)) + Int(max(0, reel_unacknowledged(descriptor)))
    }

    /// Looks whether the far side has taken what it had to since the look before.
    func checkReadingPace() -> SlowReaderDetector.Finding {
        pace.look(written: writtenBytes, left: unacknowledgedBytes)
    }
}
