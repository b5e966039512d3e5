package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
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
	l := plainLab(t)
	w := l.bare()
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
	killBoth(t, l.Lab, "node-a")
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
	ends atomic.Bool // an error is what is wanted
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
		c, err := w.dial(t.Context(), "client-a", clusterIPService.Of(w.v6), keptTimeout)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		g, err := readGreeting(c)
		if err != nil {
			t.Fatal(err)
		}
		answered[g.name]++
		name := fmt.Sprintf("%s by %s from %v", clusterIPService.Of(w.v6), g.name, c.LocalAddr())
		all = append(all, &streamed{kept: kept{Conn: c, name: name}})
	}
	return all, answered
}

// exchangePause leaves the processors to what the tests look at.
const exchangePause = 5 * time.Millisecond

// runExchanges makes one exchange after another until it is stopped. While there is no
// agent, TCP sends again.
func (s *streamed) runExchanges(t *testing.T, stop *atomic.Bool) {
	for ; !stop.Load(); time.Sleep(exchangePause) {
		if err := s.exchange(); err != nil {
			if !s.ends.Load() {
				t.Errorf("%s after %d exchanges: %v", s.name, s.done.Load(), err)
			}
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

// killBoth ends a Node's agent and its switch as they stand.
func killBoth(t *testing.T, l *lab.Lab, node string) {
	t.Helper()
	if err := errors.Join(l.KillAgent(node), l.KillSwitch(t.Context(), node)); err != nil {
		t.Fatal(err)
	}
}

// restoredLine is what an agent logs when it has found the connections of the
// one before.
var restoredLine = regexp.MustCompile(`msg="(\d+) connections restored, (\d+) torn, in `)

// restoredConnections is how many connections the log says were restored last.
func restoredConnections(t *testing.T, log string) int {
	t.Helper()
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	all := restoredLine.FindAllSubmatch(b, -1)
	if all == nil {
		t.Fatalf("no line %s", restoredLine)
	}
	m := all[len(all)-1]
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s connections restored, %s torn", m[1], m[2])
	return n
}

// TestLastRulesWithoutManifests: an agent that was killed, and finds no manifests
// when it is started again, forwards by what it had: connections go on, new ones
// are let in and kept out as before. When the manifests are back, nothing of it
// changes.
func TestLastRulesWithoutManifests(t *testing.T) {
	t.Parallel()
	l := up(t)
	w := &world{lab: l, addresses: addresses(l, false), dialled: new(atomic.Uint32)}
	defer w.close()
	all, _ := dialService(t, w, 4)
	all = append(all,
		w.dialMore(t, "client-b", "web-a:80"), w.dialMore(t, "client-a", "web-b:80"), w.dialMore(t, "node-a", "web-a:80"),
		w.dialMore(t, "outside", loadBalancer.Of(w.v6)), w.dialMore(t, "outside", loadBalancer.Of(w.v6)))
	stop := exchangeAll(t, all)
	waitLine(t, l.Log("node-a"), `ready`)
	waitKept(t, l, "node-a")

	killBoth(t, l, "node-a")
	manifests, away := filepath.Join(l.Dir, "manifests"), filepath.Join(l.Dir, "away")
	if err := os.Rename(manifests, away); err != nil {
		t.Fatal(err)
	}
	if err := l.RestartAgent(t.Context(), "node-a", antrail); err != nil {
		t.Fatal(err)
	}
	waitLine(t, l.Log("node-a"), `assignments restored beside \d+ entries`)
	waitLine(t, l.Log("node-a"), `the manifests cannot be read yet`)
	waitExchanges(t, all, 20)
	lastRules := func() {
		t.Helper()
		for _, from := range []string{"client-a", "client-b"} {
			if _, err := w.greet(t.Context(), from, clusterIPService.Of(w.v6)); err != nil {
				t.Errorf("%s: %v", from, err)
			}
		}
		for _, deny := range []func(context.Context, *world) (string, error){webDenied, dbDenied} {
			if _, err := deny(t.Context(), w); err != nil {
				t.Error(err)
			}
		}
	}
	lastRules()

	if err := os.Rename(away, manifests); err != nil {
		t.Fatal(err)
	}
	revalidated := waitLine(t, l.Log("node-a"), `restored connections revalidated.* examined=(\d+) removed=(\d+)`)
	if n, _ := strconv.Atoi(revalidated[1]); n < len(all) || revalidated[2] != "0" {
		t.Errorf("%s; want all of %d examined and none removed", revalidated[0], len(all))
	}
	waitExchanges(t, all, 20)
	lastRules()
	stop()
}

// TestPolicyChangedMeanwhile: policies changed while no agent ran. The next agent ends the
// connections that they forbid, and the others go on.
func TestPolicyChangedMeanwhile(t *testing.T) {
	t.Parallel()
	l := up(t)
	w := &world{lab: l, addresses: addresses(l, false), dialled: new(atomic.Uint32)}
	defer w.close()
	all, _ := dialService(t, w, 4)
	denied := w.dialMore(t, "web-b", "web-a:80")
	stop := exchangeAll(t, append(all, denied))
	waitKept(t, l, "node-a")

	killBoth(t, l, "node-a")
	const policy = `
apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata: {name: no-web-from-web}
spec:
  priority: 1
  tier: emergency
  appliedTo: [{podSelector: {matchLabels: {app: web}}}]
  ingress:
    - {name: DropFromWeb, action: Drop, from: [{podSelector: {matchLabels: {app: web}}}]}
`
	if err := os.WriteFile(filepath.Join(l.Dir, "manifests", "changed.yaml"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	denied.ends.Store(true)
	if err := l.RestartAgent(t.Context(), "node-a", antrail); err != nil {
		t.Fatal(err)
	}
	waitLine(t, l.Log("node-a"), `assignments restored beside \d+ entries`)
	revalidated := waitLine(t, l.Log("node-a"), `restored connections revalidated.* removed=(\d+) denied=(\d+)`)
	if revalidated[1] == "0" || revalidated[1] != revalidated[2] {
		t.Errorf("%s; want what is denied removed, and nothing else", revalidated[0])
	}
	waitExchanges(t, all, 20)
	for !denied.over.Load() {
		if t.Context().Err() != nil {
			t.Fatal(t.Context().Err())
		}
		time.Sleep(10 * time.Millisecond)
	}
	stop()
}

// dialMore makes a connection to a pod or Service that says everything again.
func (w *world) dialMore(t *testing.T, from, to string) *streamed {
	t.Helper()
	c, err := w.dial(t.Context(), from, to, keptTimeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := readGreeting(c); err != nil {
		t.Fatal(err)
	}
	return &streamed{kept: kept{Conn: c, name: from + " to " + to}}
}

// exchangeAll exchanges on all connections until the function that it returns is
// called, and waits for the first exchanges.
func exchangeAll(t *testing.T, all []*streamed) (stop func()) {
	t.Helper()
	var stopped atomic.Bool
	var running sync.WaitGroup
	for _, k := range all {
		running.Go(func() { k.runExchanges(t, &stopped) })
	}
	stop = func() { stopped.Store(true); running.Wait() }
	t.Cleanup(stop)
	waitExchanges(t, all, 20)
	return stop
}

// waitKept waits until a Node's agent has written its assignments, and its switch its entries. Each
// writes once a second.
func waitKept(t *testing.T, l *lab.Lab, node string) {
	t.Helper()
	base := strings.TrimSuffix(l.Socket(node), ".sock")
	for _, file := range []string{base + ".assignments.json", filepath.Join(base+".switch.sock.d", "switch.flows")} {
		waitUntil(t, file, func() bool { _, err := os.Stat(file); return err == nil })
	}
}

// waitLine waits for a line of a log, and returns what the expression found.
func waitLine(t *testing.T, log, expression string) (found []string) {
	t.Helper()
	line := regexp.MustCompile(expression)
	waitUntil(t, expression, func() bool {
		b, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		found = line.FindStringSubmatch(string(b))
		return found != nil
	})
	return found
}

// waitUntil waits until something is so.
func waitUntil(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s", what)
		}
	}
}
