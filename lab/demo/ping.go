package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/antrail/antrail/lab/raw"
)

// echoes is how many echo requests a ping sends.
const echoes = 3

// ping checks that echo requests are answered. pairs is from, to, from, to, …
func ping(pairs ...string) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		var seen []string
		for i := 0; i < len(pairs); i += 2 {
			rtt, err := w.ping(pairs[i], pairs[i+1], waitAtMost)
			if err != nil {
				return "", err
			}
			seen = append(seen, fmt.Sprintf("%s to %s %.2f ms", pairs[i], pairs[i+1], rtt.Seconds()*1000))
		}
		return strings.Join(seen, ", "), nil
	}
}

// errNoReply says that no echo reply came in time.
var errNoReply = errors.New("no echo reply")

// ping sends echo requests one after the other and returns the shortest round trip. Each
// must be answered within the timeout.
func (w *world) ping(from, to string, timeout time.Duration) (time.Duration, error) {
	var p *raw.Pinger
	err := w.lab.In(from, func() (err error) {
		p, err = raw.OpenPinger(w.addresses[to], uint16(os.Getpid()))
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", from, err)
	}
	defer p.Close()
	best := time.Hour
	for seq := range uint16(echoes) {
		rtt, err := echo(p, seq, timeout)
		if err != nil {
			return 0, fmt.Errorf("%s to %s, request %d of %d: %w", from, to, seq+1, echoes, err)
		}
		best = min(best, rtt)
	}
	return best, nil
}

// echo sends one request and waits for its reply.
func echo(p *raw.Pinger, seq uint16, timeout time.Duration) (time.Duration, error) {
	began := time.Now()
	if err := p.Send(seq); err != nil {
		return 0, err
	}
	p.SetReadDeadline(began.Add(timeout))
	for {
		got, at, err := p.Receive()
		switch {
		case isTimeout(err):
			return 0, errNoReply
		case err != nil:
			return 0, err
		case got == seq:
			return at.Sub(began), nil
		}
	}
}
