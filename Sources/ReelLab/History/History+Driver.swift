public import ReelCore

/// What the one who drives a run sees and does.
extension History {
    /// Something was done to a part of the cluster, and how it showed that it took effect.
    public func fault(_ what: String, on target: String, proof: String) {
        write("fault") { line in
            line.append(#","what":"#)
            line.append(quoted: what)
            line.append(#","target":"#)
            line.append(quoted: target)
            line.append(#","proof":"#)
            line.append(quoted: proof)
        }
    }

    /// From now on nothing is broken any more: what is not done at the end is stuck.
    public func healed() {
        write("heal") { _ in }
    }

    /// A node, or a client that folds, says what the state of the stream is as of this seq.
    public func state(_ stream: StreamName, _ epoch: Epoch, seq: Seq, digest: String, of party: String) {
        write("state") { line in
            append(stream, &line)
            append(epoch, &line)
            line.append(#","seq":"#)
            line.append(integer: seq)
            line.append(#","digest":"#)
            line.append(quoted: digest)
            line.append(#","of":"#)
            line.append(quoted: party)
        }
    }

    /// A node says which seqs of a partition can be read there.
    public func head(partition: Int, _ epoch: Epoch, first: Seq, head: Seq, of node: String) {
        write("head") { line in
            append(epoch, &line)
            line.append(#","partition":"#)
            line.append(integer: partition)
            line.append(#","first":"#)
            line.append(integer: first)
            line.append(#","head":"#)
            line.append(integer: head)
            line.append(#","of":"#)
            line.append(quoted: node)
        }
    }
}
