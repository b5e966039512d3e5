package attack

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/antrail/antrail/lab/raw"
)

const (
	pingEvery = 5 * time.Millisecond
	// pingTime is how long a reply may take to count.
	pingTime = time.Second
)

// pinging sends echo requests on a path at a steady pace, with or without replies. So a
// pause of the switch shows in each request that waited.
type pinging struct {
	path path
	*raw.Pinger

	mu      sync.Mutex
	counts  bool // requests belong to the window
	seq     uint16
	waiting map[uint16]time.Time // requests of the window without a reply
	sent    int
	took    []time.Duration
}

// openPinging opens the pinger of a path. n distinguishes pingers of one pod.
func openPinging(s *stage, p path, n uint16) (*pinging, error) {
	one := &pinging{path: p, waiting: map[uint16]time.Time{}}
	err := s.lab.In(p.from, func() (err error) {
		one.Pinger, err = raw.OpenPinger(s.pod(p.to).address, uint16(os.Getpid())<<1|n)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ping from %s: %w", p.from, err)
	}
	return one, nil
}

// runSend sends requests until ctx ends.
func (p *pinging) runSend(ctx context.Context) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		p.Send(p.next()) // a refused request counts as one without a reply
	}
}

// next is the sequence number of the next request, and records its time.
func (p *pinging) next() uint16 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seq++
	if p.counts {
		p.sent++
		p.waiting[p.seq] = time.Now()
	}
	return p.seq
}

// runReceive records replies until the socket is closed.
func (p *pinging) runReceive() {
	for {
		seq, at, err := p.Receive()
		if n, is := err.(net.Error); err != nil && !(is && n.Timeout()) {
			return
		}
		p.mu.Lock()
		if sent, ok := p.waiting[seq]; ok {
			delete(p.waiting, seq)
			p.took = append(p.took, at.Sub(sent))
		}
		p.mu.Unlock()
	}
}

func (p *pinging) beginWindow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts, p.sent, p.took = true, 0, nil
	clear(p.waiting)
}

// end waits until all requests of the window have a reply, for pingTime.
func (p *pinging) end() Pings {
	p.mu.Lock()
	p.counts = false
	p.mu.Unlock()
	for end := time.Now().Add(pingTime); p.open() > 0 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return Pings{Sent: p.sent, Lost: len(p.waiting), P99: milliseconds(percentile(p.took, 99))}
}

// open is the number of requests without a reply.
func (p *pinging) open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting)
}
