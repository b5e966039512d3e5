package dataplane_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack/reassembly"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// Fragments as a network brings them: datagrams cut anywhere, their fragments in
// any order, mixed, lost, twice, overlapping, late. Whatever came, a datagram
// leaves whole and as it would have left uncut, or not at all, and every
// fragment is sent, dropped or waiting.

// storm is a switch and a script of bytes that says what comes to it.
type storm struct {
	*rig
	script  []byte
	whole   map[string][]byte // what is cut
	want    map[string][]byte // what leaves of it uncut
	flights []*flight
	came    uint64 // fragments given to the switch
	left    uint64 // fragments that left
}

// flight is a datagram on its way, and what must become of it.
type flight struct {
	name  string
	parts [][]byte
	came  []bool // since its first fragment, or since it was whole
	began int64
	dead  bool // an overlap came: nothing of it may leave
}

// stormNames are the datagrams that leave the same every time.
var stormNames = []string{"udp", "icmp", "udp6", "icmp6", "udp, options"}

// stormWants is what leaves of each when it is not cut.
func stormWants(t testing.TB) map[string][]byte {
	t.Helper()
	want := map[string][]byte{}
	for _, name := range stormNames {
		r := newJumboRig(t, hairpinFlows)
		want[name] = r.sendFrame(1, datagrams()[name])[0].frame
	}
	return want
}

// next is the script's next byte; 0 at its end.
func (s *storm) next() int {
	if len(s.script) == 0 {
		return 0
	}
	b := s.script[0]
	s.script = s.script[1:]
	return int(b)
}

// run follows the script to its end.
func (s *storm) run() {
	for len(s.script) > 0 {
		op := s.next() % 16
		if len(s.flights) == 0 || op == 0 && len(s.flights) < 8 {
			s.takeOff()
			continue
		}
		f := s.flights[s.next()%len(s.flights)]
		i := s.next() % len(f.parts)
		switch {
		case op == 1:
			s.warp(time.Duration(s.next()%8) * time.Second)
		case op == 2 && f.came[i]:
			s.overlap(f, i)
		case op < 5:
			s.bring(f, i)
		default:
			s.bring(f, f.missing(i))
		}
	}
}

// takeOff cuts a datagram.
func (s *storm) takeOff() {
	f := &flight{name: stormNames[s.next()%len(stormNames)]}
	var cuts []int
	step := func() int { return 256 + 8*(s.next()%144) }
	for at := step(); at < 4008; at += step() {
		cuts = append(cuts, at)
	}
	f.parts = packettest.Split(s.whole[f.name], uint32(len(s.flights)+1), cuts...)
	f.came = make([]bool, len(f.parts))
	s.flights = append(s.flights, f)
}

// missing is a fragment that has not come, from i on, or i.
func (f *flight) missing(i int) int {
	for n := range f.came {
		if j := (i + n) % len(f.came); !f.came[j] {
			return j
		}
	}
	return i
}

// bring sends fragment i, and checks that what leaves is the whole datagram if
// it was the last that was missing, and nothing else.
func (s *storm) bring(f *flight, i int) {
	s.Helper()
	f.age(*s.now)
	f.came[i] = true
	out := s.give(f.parts[i])
	if f.dead || slices.Contains(f.came, false) {
		if len(out) != 0 {
			s.Fatalf("%d frames left, and the %s datagram is not whole", len(out), f.name)
		}
		return
	}
	f.restart()
	if len(out) != len(f.parts) {
		s.Fatalf("%d frames left of a %s datagram of %d fragments; drops %v", len(out), f.name, len(f.parts), s.drops())
	}
	if got := packettest.Join(out); !bytes.Equal(got, s.want[f.name]) {
		s.Fatalf("the fragments of %s are\n%x, the whole\n%x", f.name, got, s.want[f.name])
	}
	for j, b := range out {
		if len(b) != len(f.parts[j]) {
			s.Fatalf("fragment %d left with %d bytes, came with %d", j, len(b), len(f.parts[j]))
		}
	}
}

// overlap sends what fragment i is not, at its place.
func (s *storm) overlap(f *flight, i int) {
	s.Helper()
	f.age(*s.now)
	if !f.came[i] {
		return
	}
	other := bytes.Clone(f.parts[i])
	other[len(other)-1] ^= 1
	if out := s.give(other); len(out) != 0 {
		s.Fatalf("%d frames left at an overlap", len(out))
	}
	f.dead = true
}

// give sends a frame and returns what left by port 2.
func (s *storm) give(b []byte) (out [][]byte) {
	s.Helper()
	s.came++
	for _, x := range s.sendFrame(1, b) {
		out = append(out, x.frame)
	}
	s.left += uint64(len(out))
	return out
}

// age notes when the datagram's first fragment came, and forgets it in time.
func (f *flight) age(now int64) {
	if now-f.began >= int64(reassembly.Timeout) {
		f.restart()
	}
	if !slices.Contains(f.came, true) {
		f.began = now
	}
}

func (f *flight) restart() {
	clear(f.came)
	f.dead = false
}

// balance checks that every fragment was sent, dropped or waits, that the
// limits hold, and that in time nothing waits.
func (s *storm) balance() {
	s.Helper()
	w := s.sw.Fragments()
	if dropped := total(s.sw.Drops()); s.came != s.left+dropped+uint64(w.Fragments) {
		s.Errorf("%d fragments came, %d left, %d were dropped, %d wait", s.came, s.left, dropped, w.Fragments)
	}
	if w.Bytes > reassembly.MaxBytes || w.Datagrams > reassembly.MaxDatagrams || (w.Fragments == 0) != (w.Bytes == 0) {
		s.Errorf("waiting: %+v", w)
	}
	s.warp(reassembly.Timeout)
	if w := s.sw.Fragments(); w.Datagrams != 0 || w.Fragments != 0 || w.Bytes != 0 {
		s.Errorf("in time there wait %+v", w)
	}
	if dropped := total(s.sw.Drops()); s.came != s.left+dropped {
		s.Errorf("%d fragments came, %d left, %d were dropped in the end", s.came, s.left, dropped)
	}
	wantPacketCounters(s, s.sw, s.came)
}

// TestFragmentStorm follows random scripts.
func TestFragmentStorm(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 5))
	want := stormWants(t)
	for range 20 {
		script := make([]byte, 0, 4096)
		for len(script) < 4096 {
			script = binary.LittleEndian.AppendUint64(script, rnd.Uint64())
		}
		s := &storm{rig: newRig(t, hairpinFlows), script: script, whole: datagrams(), want: want}
		s.run()
		s.balance()
		if s.left == 0 || s.sw.Drops()[telemetry.DropFragOverlap] == 0 || s.sw.Drops()[telemetry.DropFragExpired] == 0 {
			t.Errorf("the script is too tame: %d left, drops %v", s.left, s.drops())
		}
	}
}

// FuzzFragments follows any script.
func FuzzFragments(f *testing.F) {
	f.Add([]byte("\x00\x00\xff\xff\xff\x05\x00\x00\x05\x00\x00\x05\x00\x00"))
	f.Add([]byte("\x00\x02\x00\x05\x00\x01\x02\x00\x01\x05\x00\x00\x01\x07"))
	want := stormWants(f)
	f.Fuzz(func(t *testing.T, script []byte) {
		s := &storm{rig: newRig(t, hairpinFlows), script: script[:min(len(script), 2000)], whole: datagrams(), want: want}
		s.run()
		s.balance()
	})
}

// FuzzFragmentBytes gives a switch any frames: it must not fail, and every
// frame is sent, dropped or waits.
func FuzzFragmentBytes(f *testing.F) {
	for _, whole := range datagrams() {
		var all []byte
		for _, b := range packettest.Split(whole, 7, 1208, 2416) {
			all = binary.BigEndian.AppendUint16(all, uint16(len(b)))
			all = append(all, b...)
		}
		f.Add(all)
	}
	f.Fuzz(func(t *testing.T, frames []byte) {
		r := newJumboRig(t, hairpinFlows)
		came, left := uint64(0), uint64(0)
		for len(frames) >= 2 && came < 200 {
			n := min(int(binary.BigEndian.Uint16(frames)), len(frames)-2, packet.LargeBuffer-packet.Headroom)
			if n >= packet.EthernetLen {
				came++
				left += uint64(len(r.sendFrame(1, frames[2:2+n])))
			}
			frames = frames[2+n:]
		}
		if dropped, w := total(r.sw.Drops()), r.sw.Fragments(); came != left+dropped+uint64(w.Fragments) {
			t.Errorf("%d frames came, %d left, %d were dropped, %d wait", came, left, dropped, w.Fragments)
		}
	})
}
