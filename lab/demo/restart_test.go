package demo

import (
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antrail/antrail/lab"
)

// TestConnectionsSurviveTheAgent: connections through a ClusterIP, with bytes on
// their way, go on after the agent was killed and started again, each with the
// endpoint that it had.
func TestConnectionsSurviveTheAgent(t *testing.T) {
	l := up(t)
	w := &world{lab: l, addresses: addresses(l, false), dialled: new(atomic.Uint32)}
	defer w.close()
	all, answered := dialService(t, w, 8)
	if answered["web-a"] == 0 || answered["web-b"] == 0 {
		t.Fatalf("answered: %v; one endpoint of each Node should", answered)
	}

	var stop atomic.Bool
	var running sync.WaitGroup
	for _, k := range all {
		running.Go(func() { k.runExchanges(t, &stop) })
	}
	waitExchanges(t, all, 20)
	killAgent(t, l, "node-a")
	if err := l.RestartAgent(t.Context(), "node-a", antrail); err != nil {
		t.Error(err)
	}
	waitExchanges(t, all, 20)
	stop.Store(true)
	running.Wait()
	if n := restoredConnections(t, l.Log("node-a")); n < len(all) {
		t.Errorf("%d connections were restored, and %d are there", n, len(all))
	}
}

// streamed is a connection on which exchanges follow each other, counted.
type streamed struct {
	kept
	done atomic.Int64
	over atomic.Bool // by an error
}

// dialService makes connections to a Service whose endpoints say everything
// again, and counts which endpoint answered.
func dialService(t *testing.T, w *world, count int) (all []*streamed, answered map[string]int) {
	t.Helper()
	for _, pod := range []string{"web-a", "web-b"} {
		if err := w.listen(pod, webPort, func(c net.Conn) { io.Copy(c, c) }); err != nil {
			t.Fatal(err)
		}
	}
	answered = make(map[string]int)
	for len(all) < count || len(answered) < 2 && len(all) < 8*count {
		c, err := w.dial(t.Context(), "client-a", of(w, clusterIPService), keptPatience)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		g, err := readGreeting(c)
		if err != nil {
			t.Fatal(err)
		}
		answered[g.name]++
		name := fmt.Sprintf("%s by %s from %v", of(w, clusterIPService), g.name, c.LocalAddr())
		all = append(all, &streamed{kept: kept{Conn: c, name: name}})
	}
	return all, answered
}

// runExchanges exchanges without a pause until it is stopped. While there is no
// agent, TCP sends again.
func (s *streamed) runExchanges(t *testing.T, stop *atomic.Bool) {
	for !stop.Load() {
		if err := s.exchange(); err != nil {
			t.Errorf("%s after %d exchanges: %v", s.name, s.done.Load(), err)
			s.over.Store(true)
			return
		}
		s.done.Add(1)
	}
}

// waitExchanges waits until every connection has made so many exchanges more, or
// is over.
func waitExchanges(t *testing.T, all []*streamed, more int64) {
	t.Helper()
	for _, s := range all {
		for want := s.done.Load() + more; s.done.Load() < want && !s.over.Load(); {
			if t.Context().Err() != nil {
				t.Fatal(t.Context().Err())
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// killAgent kills a Node's agent as it stands.
func killAgent(t *testing.T, l *lab.Lab, node string) {
	t.Helper()
	for _, a := range l.State.Agents {
		if a.Node != node {
			continue
		}
		p, err := os.FindProcess(a.Process.PID)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("the lab has no agent of %s", node)
}

// restoredLine is what an agent logs when it has found the connections of the
// one before.
var restoredLine = regexp.MustCompile(`msg="(\d+) connections restored, (\d+) torn, in `)

// restoredConnections is how many connections the log says were restored.
func restoredConnections(t *testing.T, log string) int {
	t.Helper()
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	m := restoredLine.FindSubmatch(b)
	if m == nil {
		t.Fatalf("no line %s", restoredLine)
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s connections restored, %s torn", m[1], m[2])
	return n
}
