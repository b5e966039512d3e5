package node

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/antrail/antrail/cni"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/internal/testsize"
	"github.com/containernetworking/cni/pkg/types"
)

// TestKillsBetweenSteps kills ADD and DEL after each of their steps. The next agent has the
// whole attachment or none of it. ADD and DEL then work as usual.
func TestKillsBetweenSteps(t *testing.T) {
	for _, verb := range []cni.Verb{cni.Add, cni.Del} {
		r := newRig(t)
		box := nstest.New(t)
		kills := 0
		for at := 0; ; at++ {
			q := request(box, "web", "eth0")
			if verb == cni.Del {
				r.add(q)
			}
			if !r.killed(at, func() { r.Do(t.Context(), verb, q) }) {
				break
			}
			kills++
			r.restart()
			_, stays := r.record.findAttachment(q.Attachment)
			r.wantConsistent(map[bool]int{true: 1}[stays])
			if verb == cni.Add && stays && at < 4 {
				t.Errorf("ADD killed after %v stays", r.steps)
			}
			r.add(q)
			r.wantConsistent(1)
			r.must(r.Del(t.Context(), q))
			r.wantConsistent(0)
			r.wantEmpty(box)
		}
		if want := map[cni.Verb]int{cni.Add: 5, cni.Del: 3}[verb]; kills != want {
			t.Errorf("%s has %d steps to be killed after, want %d", verb, kills, want)
		}
	}
}

// TestThousandInDisorder: 1,000 times, with -short 250 times, ADD and DEL in random order,
// with kills at random steps, vanishing sandboxes and restarted agents. The Node's state
// matches the calls. No address has two owners. In the end nothing is left.
func TestThousandInDisorder(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("ANTRAIL_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("ANTRAIL_SEED=%d", seed)
	m := &mess{rig: newRig(t, "10.10.0.0/27", "fd00:10:10::/64"), random: rand.New(rand.NewPCG(seed, 1)), live: map[cni.Attachment]bool{}}
	for range 12 {
		m.boxes = append(m.boxes, nstest.New(t))
	}
	n := testsize.Rounds(1000)
	for m.attempts < n {
		m.call()
		if t.Failed() {
			t.Fatalf("after %d calls", m.calls)
		}
	}
	if m.kills < n/20 || m.restarts < n/20 || m.vanished < n/100 {
		t.Errorf("only %d kills, %d restarts, %d sandboxes gone", m.kills, m.restarts, m.vanished)
	}
	for i := range m.boxes {
		for _, ifname := range []string{"eth0", "net1"} {
			m.must(m.Del(t.Context(), m.request(i, ifname)))
		}
		m.wantEmpty(m.boxes[i])
	}
	m.must(m.GC(t.Context(), &cni.Request{Network: "antrail"})) // the sandboxes that vanished without DEL
	m.wantConsistent(0)
}

// mess is a runtime that calls in random order.
type mess struct {
	*rig
	random                                     *rand.Rand
	boxes                                      []*nstest.Namespace
	live                                       map[cni.Attachment]bool
	calls, attempts, kills, restarts, vanished int
}

func (m *mess) request(i int, ifname string) *cni.Request {
	return request(m.boxes[i], fmt.Sprintf("pod-%d", i), ifname)
}

// call does one random thing that a runtime, the kernel or an operator may do.
func (m *mess) call() {
	m.calls++
	i := m.random.IntN(len(m.boxes))
	q := m.request(i, []string{"eth0", "eth0", "net1"}[m.random.IntN(3)])
	switch n := m.random.IntN(100); {
	case n < 45:
		m.attempt(cni.Add, q)
	case n < 85:
		m.attempt(cni.Del, q)
	case n < 90:
		m.check(q)
	case n < 94:
		m.restart()
		m.restarts++
		m.settle()
	case n < 97:
		m.vanish(i)
	default:
		m.collect()
	}
	m.wantConsistent(len(m.live))
}

// attempt calls ADD or DEL. It kills every fifth call at a random step.
func (m *mess) attempt(v cni.Verb, q *cni.Request) {
	m.attempts++
	at := -1
	if m.random.IntN(5) == 0 {
		at = m.random.IntN(6)
	}
	held := m.held(q.Attachment)
	var reply *cni.Reply
	var err error
	if m.killed(at, func() { reply, err = m.Do(m.Context(), v, q) }) {
		m.kills++
		m.restart()
		m.restarts++
		m.settle()
		return
	}
	m.must(err)
	if v == cni.Del {
		delete(m.live, q.Attachment)
		return
	}
	m.live[q.Attachment] = true
	for _, ip := range reply.Result.IPs {
		if a, _ := netip.AddrFromSlice(ip.Address.IP); held[a.Unmap()] {
			m.Errorf("%v is given to %v, and another has it", a, q.Attachment)
		}
	}
}

// held are the addresses on the interfaces of all other attachments, read in their
// sandboxes.
func (m *mess) held(but cni.Attachment) map[netip.Addr]bool {
	all := map[netip.Addr]bool{}
	for i, box := range m.boxes {
		for _, ifname := range []string{"eth0", "net1"} {
			link, err := box.Links().LinkByName(ifname)
			if err != nil || m.request(i, ifname).Attachment == but {
				continue
			}
			addrs, err := box.Links().AddrList(link, 0)
			m.must(err)
			for _, a := range addrs {
				if p, err := prefixOf(*a.IPNet); err == nil && p.Addr().IsGlobalUnicast() {
					all[p.Addr()] = true
				}
			}
		}
	}
	return all
}

// settle updates the model after a restart: the killed call may have had its effect or not.
func (m *mess) settle() {
	clear(m.live)
	for _, a := range m.record.all() {
		m.live[a.Attachment] = true
	}
}

func (m *mess) check(q *cni.Request) {
	err := m.Check(m.Context(), q)
	if !m.live[q.Attachment] {
		m.code("CHECK of nothing", err, types.ErrUnknownContainer)
	}
}

// vanish replaces a sandbox without DEL. The next agent removes the record's attachment
// when it starts.
func (m *mess) vanish(i int) {
	old := m.boxes[i]
	old.Remove()
	m.boxes[i] = nstest.New(m.T)
	for wait := time.Now().Add(time.Minute); m.linksOf(old) > 0 && time.Now().Before(wait); {
		time.Sleep(time.Millisecond) // the kernel removes the links asynchronously
	}
	m.vanished++
	m.restart()
	m.settle()
	for k := range m.live {
		if k.Container == "box-"+old.Name {
			m.Errorf("%v is in the record, and its sandbox is gone", k)
		}
	}
}

// linksOf counts the links of a sandbox.
func (m *mess) linksOf(box *nstest.Namespace) (n int) {
	for _, a := range m.record.all() {
		_, err := m.home.links.LinkByName(a.Link)
		if a.Container == "box-"+box.Name && err == nil {
			n++
		}
	}
	return n
}

// collect calls GC with about half of the attachments as valid.
func (m *mess) collect() {
	q := &cni.Request{Network: "antrail"}
	for k := range m.live {
		if m.random.IntN(2) == 0 {
			q.Valid = append(q.Valid, k)
		} else {
			delete(m.live, k)
		}
	}
	m.must(m.GC(m.Context(), q))
}

// TestManyAtOnce: independent callers, some for the same interface. Every call succeeds.
func TestManyAtOnce(t *testing.T) {
	r := newRig(t, "10.10.0.0/28")
	r.step = func(string) {}
	var boxes []*nstest.Namespace
	for range 6 {
		boxes = append(boxes, nstest.New(t))
	}
	var wg sync.WaitGroup
	errs := make(chan error, 1000)
	for i := range 12 {
		q := request(boxes[i%6], fmt.Sprintf("pod-%d", i%6), []string{"eth0", "net1"}[i/6])
		wg.Go(func() {
			for range 8 {
				_, err := r.Add(t.Context(), q)
				errs <- err
				r.Status(t.Context(), q)
				errs <- r.Del(t.Context(), q)
			}
		})
		wg.Go(func() {
			for range 4 {
				errs <- r.GC(t.Context(), &cni.Request{Network: "another"})
				errs <- r.Del(t.Context(), q)
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	r.wantConsistent(0)
}
