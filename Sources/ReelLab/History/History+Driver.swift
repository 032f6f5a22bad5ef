public import ReelCore

/// The lines of the driver of a run, and of a program that asks nodes.
extension History {
    /// Notes a fault of a part of the cluster.
    ///
    /// - Parameters:
    ///   - what: the kind of fault.
    ///   - target: the part of the cluster.
    ///   - proof: the evidence that the fault took effect.
    public func fault(_ what: String, on target: String, proof: String) {
        write("fault") { line in
            line.member("what", what)
            line.member("target", target)
            line.member("proof", proof)
        }
    }

    /// Notes that no fault is active from now on: anything unfinished at the end is stuck.
    public func healed() {
        write("heal") { _ in }
    }

    /// Notes the state of a stream, as a node or a folding client reports it.
    ///
    /// - Parameters:
    ///   - stream: the stream.
    ///   - epoch: the epoch of the log that `seq` belongs to.
    ///   - seq: the seq as of which the state is folded.
    ///   - digest: the digest of the state, as 16 lower-case hex digits.
    ///   - party: the node or client that reports the state.
    public func state(_ stream: StreamName, _ epoch: Epoch, seq: Seq, digest: String, of party: String) {
        write("state") { line in
            line.member("stream", stream.description)
            line.member("epoch", epoch.description)
            line.member("seq", seq)
            line.member("digest", digest)
            line.member("of", party)
        }
    }

    /// Notes which seqs of a partition can be read at a node, as the node reports it.
    ///
    /// - Parameters:
    ///   - partition: the number of the partition.
    ///   - epoch: the epoch of the log that the seqs belong to.
    ///   - first: the first seq that can be read.
    ///   - head: the last seq that can be read.
    ///   - node: the node.
    public func head(partition: Int, _ epoch: Epoch, first: Seq, head: Seq, of node: String) {
        write("head") { line in
            line.member("epoch", epoch.description)
            line.member("partition", partition)
            line.member("first", first)
            line.member("head", head)
            line.member("of", node)
        }
    }
}
