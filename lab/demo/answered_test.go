package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/internal/testsize"
	"github.com/antrail/antrail/lab"
)

// A pair of pods that fills the connection table with UDP connections that are
// answered, each from a port of its own.
const (
	answeredTable = 20_000 // with -short a quarter, and so many flows
	answeredFlows = 22_000
	answeredPort  = 1024 // the first that they are sent from
	answeredTries = 5    // of a datagram that is not answered
	answeredRound = 1000 // flows, while the others connect once
	answeredAfter = 20   // connects of each of the others, when all flows are there
)

// TestAnsweredFlows: while one pod holds 22,000 answered UDP connections in a table of
// 20,000, the connects of all others succeed, and the counters name the pod that pays.
func TestAnsweredFlows(t *testing.T) {
	table, flows := testsize.Rounds(answeredTable), testsize.Rounds(answeredFlows)
	w, err := newWorld(upWith(t, lab.Options{Conntrack: config.Conntrack{Max: table}}))
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	attempts, failed := 0, 0
	for first := 0; first < flows; first += answeredRound {
		flood := make(chan error, 1)
		go func() {
			flood <- w.lab.In("db-a", func() error { return answeredFlood(w.resolve("client-a:5001"), first) })
		}()
		a, f := w.askAll(t)
		attempts, failed = attempts+a, failed+f
		if err := <-flood; err != nil {
			t.Fatal(err)
		}
	}
	for range answeredAfter { // the table is as full as it becomes
		a, f := w.askAll(t)
		attempts, failed = attempts+a, failed+f
	}
	s := connectionCounters(t, w, "node-a")
	paid, held := portCounters(t, w, "node-a", "ct_port_evicted_total"), portCounters(t, w, "node-a", "ct_port_entries")
	t.Logf("%d of %d connects failed; %d entries of %d; held %v, given up %v", failed, attempts, s["ct_entries"], s["ct_limit"], held, paid)
	if failed > 0 {
		t.Errorf("%d of %d connects failed, want none", failed, attempts)
	}
	hog, most := "", uint64(0)
	for port, n := range held {
		if n > most {
			hog, most = port, n
		}
	}
	if most < uint64(table/2) || len(paid) == 0 {
		t.Errorf("the table was never full: held %v, given up %v", held, paid)
	}
	for port, n := range paid {
		if n > 0 && port != hog {
			t.Errorf("%s gave up %d connections, and %s holds the most", port, n, hog)
		}
	}
}

// answeredFlood has a round's datagrams answered, each from a port of its own.
func answeredFlood(to string, first int) error {
	for i := range answeredRound {
		c, err := (&net.Dialer{LocalAddr: &net.UDPAddr{Port: answeredPort + first + i}}).Dial("udp4", to)
		if err != nil {
			return err
		}
		err = answeredOnce(c)
		if err = errors.Join(err, c.Close()); err != nil {
			return fmt.Errorf("datagram %d: %w", first+i, err)
		}
	}
	return nil
}

func answeredOnce(c net.Conn) (err error) {
	var b [8]byte
	for range answeredTries {
		if _, err = c.Write(b[:1]); err != nil {
			return err
		}
		c.SetReadDeadline(time.Now().Add(time.Second))
		if _, err = c.Read(b[:]); err == nil {
			return nil
		}
	}
	return err
}

// askAll has other pods, and the Node, make a connection each, and counts those that
// failed.
func (w *world) askAll(t *testing.T) (attempts, failed int) {
	t.Helper()
	pairs := [][2]string{{"web-a", "db-a:3306"}, {"client-b", "web-a:80"}, {"node-a", "db-a:3306"}, {"client-a", "client-b:5001"}}
	errs := make([]error, len(pairs))
	var all sync.WaitGroup
	for i, p := range pairs {
		all.Go(func() { _, errs[i] = w.greet(context.Background(), p[0], p[1]) })
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			t.Logf("%v: %v", pairs[i], err)
			failed++
		}
	}
	return len(errs), failed
}

// portCounters are those counters of a Node's connections that are one for each port.
func portCounters(t *testing.T, w *world, node, name string) map[string]uint64 {
	t.Helper()
	var all []api.Counter
	if err := w.agent(node).JSON(t.Context(), "/conntrack/stats", nil, &all); err != nil {
		t.Fatal(err)
	}
	m := map[string]uint64{}
	for _, c := range all {
		if c.Name == name && c.Value > 0 {
			m[c.Label] = c.Value
		}
	}
	return m
}
