package sched

import "time"

// A worker without packets spins for a while, because waking it out of epoll_wait(2) costs the
// next packet tens of microseconds. How long it spins follows its sleeps:
//
//  1. A short sleep shows that longer spinning would have met the packet.
//  2. A long sleep shows that spinning was wasted. An idle switch therefore does not spin.
//
// While few packets come, a spinning worker reads only its awake ports, for lookPause. Then it
// looks for other ports. Before each look it lets other threads run, because they may send the
// next packet; two pods and two workers may share two processors. If such a yield takes long,
// another thread needs the processor. Then the worker sleeps at once for a while, because the
// kernel prefers a thread that was woken.

const (
	// maxSpin is the longest spin, about the cost of a wake-up.
	maxSpin = 50 * time.Microsecond
	// conversationSpin is the longest spin after at most FewPackets of at most fewBytes together.
	// These belong to a conversation, whose next packet may come after several threads were
	// woken. After more packets, sleeping and receiving more at once is better.
	conversationSpin = 120 * time.Microsecond
	// FewPackets is the number of packets up to which a round looks like a conversation.
	FewPackets = 4
	fewBytes   = 4 * 1514
	// longYield is the time from which a yield shows that another thread needs the processor. The
	// worker then does not spin for leastDeference. The time doubles up to mostDeference if fewer
	// than manyYields yields came since the last long one.
	longYield      = 500 * time.Microsecond
	leastDeference = 10 * time.Millisecond
	mostDeference  = time.Second
	manyYields     = 100
	// lookPause is how long a worker that expects an answer reads only the awake ports. A look
	// takes longer than a packet. A frame that comes meanwhile loses more than that. The
	// processor of the pod that waits for it falls asleep. Waking it takes 8 to 16 µs in a
	// virtual machine.
	lookPause = 40 * time.Microsecond
	// minSpin is the shortest spin above 0.
	minSpin = 4 * time.Microsecond
)

// Polling decides how long a worker spins. It belongs to the worker's goroutine.
type Polling struct {
	span      time.Duration
	Began     time.Duration // when this spin began
	deference time.Duration // how long the last pause in spinning was
	until     time.Duration // … and when it ends
	yields    int           // yields since the last long one
	looked    time.Duration // when it last yielded and looked
	brought   int           // packets since the last empty round
	bytes     int           // of these packets
	Vain      int           // wake-ups in a row by a port without a packet
}

// Talks reports whether the last packets were few and small, as in a conversation.
func (p *Polling) Talks() bool { return p.brought <= FewPackets && p.bytes <= fewBytes }

// most is the longest spin now.
func (p *Polling) most() time.Duration {
	if p.Talks() {
		return conversationSpin
	}
	return maxSpin
}

// Spins reports whether the worker goes on spinning.
func (p *Polling) Spins(now time.Duration) bool {
	return now-p.Began < min(p.span, p.most()) && now >= p.until
}

// Awaits reports whether to wait for an answer without a look at other ports. That holds shortly
// after the last look, or after the beginning of the spin.
func (p *Polling) Awaits(now time.Duration) bool {
	return p.Talks() && p.Spins(now) && now-max(p.looked, p.Began) < lookPause
}

// Yielded learns from a yield to other threads.
func (p *Polling) Yielded(before, after time.Duration) {
	p.looked = after
	if p.yields++; after-before < longYield {
		return
	}
	if p.yields > manyYields {
		p.deference = 0
	}
	p.deference = min(mostDeference, max(leastDeference, 2*p.deference))
	p.until, p.yields = after+p.deference, 0
}

// Received learns from the packets of a round. first is true if the round before had none.
func (p *Polling) Received(n, bytes int, first bool) {
	if first {
		p.brought, p.bytes = 0, 0
	}
	p.brought += n
	p.bytes += bytes
	p.Vain = 0
}

// Slept learns from a sleep. After several sleeps in a row without a packet, it stops the
// spinning.
func (p *Polling) Slept(d time.Duration) {
	switch {
	case p.Vain > 1:
		p.span = 0
	case d < p.most():
		p.span = min(p.most(), max(minSpin, 2*p.span))
	case p.span > minSpin:
		p.span /= 2
	default:
		p.span = 0
	}
}
