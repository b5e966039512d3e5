package dataplane

import (
	"slices"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// An opening is how the connections between two ends, or of a client to a Service,
// begin, whatever their ports. The cache knows packets by all their headers, so it
// cannot know a connection's first packet. But most first packets are like one before
// but for their ports, and most walks ask for no port, or for the destination's alone:
// each stretch says which bits its lookups asked for (asked.go). Then the walk is
// remembered under the signature without the ports that were not asked for. Conntrack is
// asked once, whether the packet has no connection, and begins one where the walk did.

// A walk is an opening when all its lookups were in stretches that it took; when between
// these there was nothing but ct() and an output, which read no port; when none wrote an
// address or a port; and when conntrack found no connection, once, and translated
// nothing but the destination, to one address and port. What such a walk does follows
// from the rest of the signature alone, and from that there is no connection and room
// for one. It holds as long as other entries of the cache, but for learned entries: a
// stretch passes a table that can learn only while it has learned nothing, so it holds
// until one begins to (Switch.awoken).

// A select group may be between the stretches too, that of a Service: its choice is by
// all ports. So there are two searches then. What is found without the source's port
// says which group is to be asked; then the walk is found under the bucket that it
// chooses, which stands where that port was (cached.asks). A change of the group
// empties the cache, as any change of the pipeline does.

// openingBit is in the fourth word of the signature of an opening, where no packet's
// signature has a bit: behind the TCP flags. With it is bucketBit in one of a bucket.
const (
	openingBit = 1 << 47
	bucketBit  = 1 << 46
)

// portMasks is which bits of the ports an opening may have asked for, as they lie in
// the signature: none, the destination's first byte, all of the destination's.
var portMasks = [...]uint64{0, 0xff << 16, wholeMask}

// wholeMask is the mask of openings that translate the destination, or have a group, and
// mostBuckets is of how many buckets that may choose one.
const (
	wholeMask   = 0xffff << 16
	mostBuckets = 1 << 16
)

// portWords is where a key has the ports, and the same of the original direction; to
// is where the signature has them.
var portWords = func() (all [4]struct{ index, shift, to int }) {
	for i, id := range []flow.FieldID{flow.TCPSrc, flow.TCPDst, flow.CTTpSrc, flow.CTTpDst} {
		off := flow.FieldByID(id).Off
		all[i].index, all[i].shift, all[i].to = off/8, off%8*8, i%2*16
	}
	return all
}()

// portBits is the bits of the ports among bits of a key, as they lie in a signature.
func (b *keyBits) portBits() (ports uint64) {
	for _, p := range &portWords {
		ports |= b[p.index] >> p.shift & 0xffff << p.to
	}
	return ports
}

// readsPorts says whether a piece of the key is of a word that has ports.
func (p *piece) readsPorts() bool {
	return slices.ContainsFunc(portWords[:], func(w struct{ index, shift, to int }) bool { return w.index == p.index })
}

// opening is which bits of the ports the recorded walk asked for, if it is one.
func (r *recording) opening() (mask uint64, ok bool) {
	if !r.alike || r.n != 1 || r.plain || !hasPorts(r.layers.Proto) {
		return 0, false
	}
	asked := uint64(0)
	for i := range r.parts {
		s := r.parts[i].stretch
		if s.tuple {
			return 0, false
		}
		asked |= s.shape.whole.portBits()
	}
	whole := r.chooser != nil || r.begins.Commit && r.begins.NAT != nil // what is replayed changes that very port
	for _, mask := range portMasks {
		if asked&^mask == 0 && (!whole || mask == wholeMask) {
			return mask, true
		}
	}
	return 0, false
}

// acts notes an action that is none of those an opening may have between its stretches,
// but for groups, which chose notes, and for what depends on nothing: going to a table,
// and writing constants to what is no header.
func (r *recording) acts(a flow.Action) {
	switch a := a.(type) {
	case flow.GroupAction:
		return
	case flow.Resubmit:
		r.alike = r.alike && a.InPort == flow.PortInPort
	case flow.SetField:
		r.alike = r.alike && flow.FieldByID(a.Field).Off < flow.HeaderStart
	default:
		r.alike = false
	}
}

// chose notes that a select group chose a bucket for a frame, by the addresses and ports
// that it came with.
func (r *recording) chose(f *packet.Frame, g *group, bucket int) {
	r.alike = r.alike && r.on && r.chooser == nil && g.Type == flow.GroupSelect && bucket < mostBuckets && r.sameTuple(f)
	r.chooser, r.bucket = g, bucket
}

// began notes that a ct() began the connection that one before it had not found.
func (r *recording) began(m *conntrack.Meta, req *conntrack.Request, v conntrack.Verdict) {
	r.on = r.alike && r.n == 1 && v.Drop == conntrack.DropNone && !req.Force && m.AsRequested(req)
	r.begins = *req
	r.begins.Near = nil
}

// openings is the masks of openings that the cache has, the one that served most
// lately first.
type openings struct {
	masks [len(portMasks)]uint64
	n     int
}

// add notes that there is an opening of a mask.
func (o *openings) add(mask uint64) {
	if !slices.Contains(o.masks[:o.n], mask) {
		o.masks[o.n] = mask
		o.n++
	}
}

// open treats a packet as the first packet of a connection before was treated, if it
// begins one like it. When it reports false the packet is as it was, and must walk.
func (k *walk) open(f *packet.Frame, inPort uint32) bool {
	c := k.w.cache
	o, s := &c.openings, &c.sig
	if o.n == 0 || !hasPorts(k.layers.Proto) {
		return false
	}
	exact, hash := s.words[3], s.hash
	for i, mask := range o.masks[:o.n] {
		s.widen(mask)
		e := c.find()
		if e != nil && e.asks {
			e.used, s.words[3] = c.round, exact
			e = k.chosen(c.prog.groups.get(e.path))
		}
		if e != nil && k.opens(e, f, inPort) {
			if i > 0 {
				o.masks[i], o.masks[i-1] = o.masks[i-1], mask
			}
			return true
		}
		s.words[3] = exact
	}
	s.hash = hash
	return false
}

// chosen is the opening of the bucket that a group chooses for the packet, or nil.
func (k *walk) chosen(g *group) *cached {
	s := &k.w.cache.sig
	i := g.choose(tupleHash(s.tuple(), k.w.sw.hashSeed))
	if i < 0 {
		return nil
	}
	s.widenBucket(i)
	return k.w.cache.find()
}

// ask remembers, under the signature of a bucket's opening but for the bucket, that first
// packets ask a group.
func (c *cache) ask(g *group, port uint32) {
	c.sig.words[3] &^= bucketBit
	c.sig.widen(wholeMask)
	if e := c.place(port); e != nil {
		e.used, e.asks, e.path = c.round, true, g.ID
	}
}

// crowded says that half of the paths that there may be are there: each of a Service's
// endpoints has one, so those of Services are to leave room for others.
func (c *cache) crowded() bool { return 2*len(c.paths) > c.most/pathShare }

// hasPorts says of which protocols there are openings.
func hasPorts(proto uint8) bool { return proto == packet.ProtoTCP || proto == packet.ProtoUDP }

// widen turns a packet's signature into that of all packets like it but for the bits of
// the ports beyond mask: the signature of an opening. The mask stands where the source's
// port was, or a port of 0 under one mask would be any port under another.
func (s *signature) widen(mask uint64) {
	s.words[3] = s.words[3]&^0xffffffff | s.words[3]&mask | mask>>16 | openingBit
	s.sum()
}

// widenBucket turns a packet's signature into that of all packets like it but for the
// source's port, for which a group chooses a bucket.
func (s *signature) widenBucket(bucket int) {
	s.words[3] = s.words[3]&^0xffff | uint64(bucket) | openingBit | bucketBit
	s.sum()
}

// opens does what an opening says, or nothing.
func (k *walk) opens(e *cached, f *packet.Frame, inPort uint32) bool {
	p := k.w.cache.paths[e.path]
	if p.learned != 0 && p.learned != k.w.sw.awoken.Load()+1 || !k.passes(e, f) {
		return false
	}
	if p.begins.Commit {
		k.request = p.begins
		k.request.Near = k.near
		if !k.w.sw.conntrack.Begin(f, &k.layers, &k.ct, &k.request, k.w.now) {
			return false
		}
	}
	k.w.cache.count[CacheOpened]++
	e.used = k.w.cache.round
	k.follow(e, p, f, inPort)
	return true
}
