package dataplane

import (
	"context"
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
)

// Shortcuts: what the connection cache remembers of an established connection is
// given to the kernel (ports.Shortcuts), which from then on does it by itself.
//
//	shortcut.go       what is offered, and what there is
//	shortcutput.go    offers become shortcuts
//	shortcutback.go   … and go again: for a change, with their connection, unused
//	shortcutcount.go  what took them is credited to entries, groups and ports
//
// A shortcut is one entry of the cache: its key is the entry's signature, so what
// may take it is what would be replayed. A worker offers an entry when enough
// packets have been replayed by it, and knows nothing of what becomes of that.
// All else is done under one lock that no packet takes.
//
// Withdrawing is one store, of generation 0, and the wait until no packet
// is under way by an older one (ports.Shortcuts.Settle). It comes after the store
// of the new pipeline or ports and before that is reported as done; an offer says
// what it was made under, and is compared with what there is under the same lock.
// So no shortcut of an old pipeline is taken after a change. A connection that
// changes takes its shortcuts back by a store of its own (conntrack/away.go).
type shortcuts struct {
	sw     *Switch
	kernel ports.Shortcuts
	after  uint16 // Config.ShortcutAfter
	offers chan offer
	stale  chan struct{} // shortcuts have been withdrawn and are to be cleared away

	mu         sync.Mutex
	generation uint32
	current    int   // shortcuts of this generation
	cuts       []cut // by place
	conns      []awayConn
	byKey      map[ports.ShortcutKey]uint32 // places in cuts
	byConn     map[conntrack.ID]uint32      // places in conns
	freeCuts   []uint32
	freeConns  []uint32
	// What has left byKey and byConn, but may be in use by a packet under way.
	leftCuts, leftConns []uint32

	events         [numShortcutEvents]atomic.Uint64
	packets, bytes atomic.Uint64
}

// cut is a shortcut as the switch sees it.
type cut struct {
	used           bool // not dropped
	key            ports.ShortcutKey
	conn           uint32 // place in conns
	path           *path  // nil when the place is free
	in, out        *switchPort
	packets, bytes uint64 // of the kernel's count, credited already
	last           int64  // when packets were last seen to have taken it
}

// awayConn is a connection that has shortcuts.
type awayConn struct {
	id    conntrack.ID
	cuts  []uint32
	moved bool // packets have passed since conntrack was told
}

// defaultShortcutAfter is how many packets an entry of the cache must have
// replayed to be offered. A connection of few packets is not worth a shortcut.
const defaultShortcutAfter = 32

// mostAsked is how often the packets until the next offer are doubled.
const mostAsked = 8

// offerQueue is how many offers may wait.
const offerQueue = 256

// offer is an entry of a cache, and what it was made under.
type offer struct {
	key      ports.ShortcutKey
	seen     conntrack.Seen
	change   change
	path     *path
	in       *switchPort
	layers   packet.Layers
	prog     *program
	ports    *portSet
	learners uint64
}

// newShortcuts begins with none.
func newShortcuts(sw *Switch, kernel ports.Shortcuts, after int) *shortcuts {
	s := &shortcuts{
		sw: sw, kernel: kernel, after: uint16(after), offers: make(chan offer, offerQueue), stale: make(chan struct{}, 1), generation: 1,
		byKey: make(map[ports.ShortcutKey]uint32), byConn: make(map[conntrack.ID]uint32),
	}
	sw.conntrack.ShareAway(kernel.Conns(), kernel.Settle)
	return s
}

// warmUp counts a packet that was replayed, and offers its entry when it is
// time, and, if that was in vain, after twice as many.
func (k *walk) warmUp(e *cached, p *path, f *packet.Frame, inPort uint32) {
	s := k.w.sw.shortcuts
	if s == nil {
		return
	}
	if e.heat++; e.heat < s.after<<e.asked {
		return
	}
	e.heat, e.asked = 0, min(e.asked+1, mostAsked)
	if o, ok := k.offerOf(e, p, f.Bytes(), inPort); ok {
		select {
		case s.offers <- o:
		default: // the next time
		}
	}
}

// offerOf is an entry as an offer, for frames that begin as b: those of one flow label,
// which shortcuts tell apart always. It is not ok for one that no shortcut can
// replace: neither TCP nor UDP, not between two ports of the kernel's, of more
// than one or no connection, dependent on learned entries.
func (k *walk) offerOf(e *cached, p *path, b []byte, inPort uint32) (offer, bool) {
	c := k.w.cache
	in := c.ports.byNumber[inPort]
	switch l := &k.layers; {
	case l.Proto != packet.ProtoTCP && l.Proto != packet.ProtoUDP,
		in == nil || in.shortcut == 0 || p.out == nil || p.out.shortcut == 0,
		e.steps != 1 || !e.ct[0].Settled(),
		p.learned != 0,
		!c.sig.plain():
		return offer{}, false
	}
	o := offer{
		key: c.sig.shortcutKey(in.shortcut), seen: e.ct[0], change: e.change, path: p, in: in,
		layers: k.layers, prog: c.prog, ports: c.ports, learners: c.learners,
	}
	if o.layers.EtherType == packet.EtherTypeIPv6 {
		o.change.ip = o.change.ip6(b)
		o.key[keyIP+1] = b[sigL3+1]
		copy(o.key[keyLabel:], b[sigL3+2:sigL3+4])
	}
	return o, true
}

// Where a key of the kernel's has the first two bytes of the IP header, and IPv6's next
// two.
const (
	keyIP    = 8 + sigL3
	keyLabel = 64
)

// plain says that a signature has neither a mark nor a tunnel.
func (s *signature) plain() bool { return s.n <= plainWords && s.words[0]>>32 == 0 }

// shortcutKey is a plain signature as a key of the kernel's.
func (s *signature) shortcutKey(link uint32) (key ports.ShortcutKey) {
	binary.NativeEndian.PutUint32(key[:], link)
	for i, w := range s.words[1:s.n] {
		binary.LittleEndian.PutUint64(key[8+8*i:], w)
	}
	return key
}

// runShortcuts makes shortcuts of offers and clears withdrawn ones away, until
// ctx ends.
func (s *shortcuts) runShortcuts(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case o := <-s.offers:
			s.put(&o)
		case <-s.stale:
			s.clearAway()
		}
	}
}

// poll does what runShortcuts would do now.
func (s *shortcuts) poll() {
	for {
		select {
		case o := <-s.offers:
			s.put(&o)
		case <-s.stale:
			s.clearAway()
		default:
			return
		}
	}
}
