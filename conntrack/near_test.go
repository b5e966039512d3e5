package conntrack

import "testing"

// TestNear: what was found out beforehand about another packet, another zone or
// another table misleads nobody, and what is right is where the packet is.
func TestNear(t *testing.T) {
	b, other := newBench(t, Config{}), newBench(t, Config{Seed: [2]uint64{7, 8}, Max: 100_000})
	first, second := udpFrame(client, server, 1234, 53), udpFrame(client, server, 1235, 53)
	b.enter(first)
	var near [4]Near
	b.Near(&near[0], b.frame, &b.layers, commit.Zone)
	b.Near(&near[1], b.frame, &b.layers, commit.Zone+1)
	other.Near(&near[2], b.frame, &b.layers, commit.Zone)
	for i, frame := range [][]byte{first, second} {
		answer := udpFrame(server, client, 53, 1234+uint16(i))
		for i := range near {
			b.Flush()
			b.enter(frame)
			r := commit
			r.Near = &near[i]
			if b.Track(b.frame, &b.layers, &b.meta, &r, b.now); b.meta.State != New|Tracked {
				t.Fatalf("near %d: ct_state %s", i, stateText(b.meta.State))
			}
			if b.checkOrder(); b.Stats().Entries != 1 {
				t.Errorf("near %d: there are %d connections", i, b.Stats().Entries)
			}
			b.want(answer, lookup, "est|rpl|trk")
		}
	}
	for dir, at := range []uint32{near[0].at.forward, near[0].at.back} {
		if want := b.index.Bucket(b.chains.Hash(&near[0].words[dir])); at != want {
			t.Errorf("direction %d: chain %d, want %d", dir, at, want)
		}
	}
}
