package ports_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/memory"
	"golang.org/x/sys/unix"
)

// pipePort is a port whose descriptor is a pipe's.
type pipePort struct {
	*memory.Port
	read, write int
}

func newPipePort(t *testing.T) *pipePort {
	t.Helper()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fds[0]); unix.Close(fds[1]) })
	return &pipePort{memory.New("pipe", memory.Options{}), fds[0], fds[1]}
}

func (p *pipePort) FD() int { return p.read }

func newPoller(t *testing.T) *ports.Poller {
	t.Helper()
	p, err := ports.NewPoller()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// wantReady fails unless the poller names exactly these ports now.
func wantReady(t *testing.T, p *ports.Poller, want ...uint32) {
	t.Helper()
	got, err := p.Wait(nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("ready: %v, want %v", got, want)
	}
}

// TestPollerNamesPorts: a port is named as long as it is readable and watched,
// by any number that a port can have.
func TestPollerNamesPorts(t *testing.T) {
	p := newPoller(t)
	const largest = 0xfffffeff
	a, b := newPipePort(t), newPipePort(t)
	if err := errors.Join(p.Watch(1, a), p.Watch(largest, b)); err != nil {
		t.Fatal(err)
	}
	wantReady(t, p)
	unix.Write(a.write, []byte{1})
	wantReady(t, p, 1)
	unix.Write(b.write, []byte{1})
	wantReady(t, p, 1, largest)
	p.Unwatch(a)
	wantReady(t, p, largest)
	unix.Read(b.read, make([]byte, 8))
	wantReady(t, p)
	if err := p.Watch(largest, b); err == nil {
		t.Error("a port is watched twice")
	}
}

// TestPollerNamesAll: more ports than one answer holds are named by several.
func TestPollerNamesAll(t *testing.T) {
	p := newPoller(t)
	named := map[uint32]bool{}
	const many = 100
	for no := range uint32(many) {
		port := newPipePort(t)
		unix.Write(port.write, []byte{1})
		if err := p.Watch(no, port); err != nil {
			t.Fatal(err)
		}
	}
	for range many {
		ready, err := p.Wait(nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, no := range ready {
			named[no] = true
		}
	}
	if len(named) != many {
		t.Errorf("%d of %d ready ports were named", len(named), many)
	}
}

// TestPollerWake: a call ends the sleep that is under way, or the next one, and
// no other.
func TestPollerWake(t *testing.T) {
	p := newPoller(t)
	p.Wake()
	p.Wake()
	if ready, err := p.Wait(nil, time.Hour); err != nil || len(ready) > 0 {
		t.Fatalf("%v, %v", ready, err)
	}
	woken := make(chan error)
	go func() {
		_, err := p.Wait(nil, time.Hour)
		woken <- err
	}()
	select {
	case err := <-woken:
		t.Fatalf("the sleep ended by itself: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	p.Wake()
	if err := <-woken; err != nil {
		t.Fatal(err)
	}
}

// TestPollerWithoutDescriptor: such a port is refused by a name of its own.
func TestPollerWithoutDescriptor(t *testing.T) {
	p := newPoller(t)
	m := memory.New("m", memory.Options{})
	if err := p.Watch(1, m); !errors.Is(err, ports.ErrNoDescriptor) {
		t.Errorf("%v", err)
	}
	p.Unwatch(m)
}
