package conntrack

import (
	"sync/atomic"
	"testing"
	"time"
)

// stripes is the locks of an index.
const stripes = 1024

// TestKnownPacketsMeetNoLock holds the locks of a table while packets of a known
// connection, and of none, are looked up, tracked and passed. One that begins a
// connection waits.
func TestKnownPacketsMeetNoLock(t *testing.T) {
	b := newBench(t, Config{})
	b.want(tcpFrame(client, service, 1234, 80, tcpText{flags: "S", seq: 1000}), commitNAT("dst=10.0.0.2:8080"), "new|trk|dnat")
	b.want(tcpFrame(server, client, 8080, 1234, tcpText{flags: "SA", seq: 5000, ack: 1001}), unNAT, "est|rpl|trk|snat")
	b.want(tcpFrame(client, service, 1234, 80, tcpText{flags: "A", seq: 1001, ack: 5001}), unNAT, "est|trk|dnat")
	mu := &b.shares.ofPort(b.Table, 0).mu
	mu.Lock()
	for chain := range uint32(stripes) {
		b.index.LockPair(chain, chain)
	}
	release := func() {
		mu.Unlock()
		for chain := range uint32(stripes) {
			b.index.UnlockPair(chain, chain)
		}
	}
	var waited atomic.Bool
	watch := time.AfterFunc(20*time.Second, func() { waited.Store(true); release() })
	for range 100 {
		b.now += int64(time.Millisecond)
		b.want(tcpFrame(client, service, 1234, 80, tcpText{flags: "A", seq: 1001, ack: 5001}), unNAT, "est|trk|dnat")
		seen, ok := b.meta.Seen()
		var p Passing
		b.enter(tcpFrame(client, service, 1234, 80, tcpText{flags: "A", seq: 1001, ack: 5001}))
		if !ok || !p.Read(b.frame, &b.layers) || !b.Pass(&seen, &p, b.now) {
			t.Fatal("a packet of the connection does not pass")
		}
		b.want(udpFrame(client, server, 9, 9), lookup, "new|trk")
	}
	if waited.Load() {
		t.Fatal("a packet waits for a lock")
	}
	began := make(chan struct{})
	go func() { b.want(udpFrame(client, server, 9, 9), commit, "new|trk"); close(began) }()
	time.Sleep(20 * time.Millisecond)
	select {
	case <-began:
		t.Error("a connection began, and its locks were held: they are not those that writers take")
	default:
	}
	watch.Stop()
	release()
	<-began
}
