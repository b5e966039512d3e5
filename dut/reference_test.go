package dut_test

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/ctvectors"
	"github.com/antrail/antrail/internal/ovstest"
)

// reference is Open vSwitch's userspace datapath with the ports of the vectors
// and a clock that stands.
type reference struct {
	testing.TB
	*ovstest.Control
	sw *ovstest.Switch
}

// livePorts are the ports of the vectors: three to send to, and the taps.
var livePorts = []int{1, 2, 3, 11, 12, 13, 14}

func newReference(t testing.TB) *reference {
	t.Helper()
	var ports []ovstest.Port
	for _, n := range livePorts {
		ports = append(ports, ovstest.Port{Name: fmt.Sprintf("p%d", n), Number: n})
	}
	s := ovstest.Start(t, ports...)
	r := &reference{t, s.Control(), s}
	r.Call("time/stop")
	return r
}

// load makes flows the only ones, and takes back all that a vector may have
// changed.
func (r *reference) load(flows []string) {
	r.Helper()
	file := filepath.Join(r.sw.Dir, "flows")
	if err := os.WriteFile(file, []byte(strings.Join(flows, "\n")), 0o600); err != nil {
		r.Fatal(err)
	}
	for _, args := range [][]string{{"del-flows"}, {"add-flows", file}} {
		if _, err := r.sw.Ofctl(args...); err != nil {
			r.Fatal(err)
		}
	}
	r.Call("revalidator/purge") // what it has cached would stay for as long as the clock stands
	r.Call("dpctl/flush-conntrack")
	r.Call("dpctl/ct-enable-tcp-seq-chk")
	r.Call("dpctl/ct-set-maxconns", "3000000")
	for _, n := range livePorts {
		r.Sent(fmt.Sprintf("p%d", n))
	}
}

// receive puts a frame into a port and says what left.
func (r *reference) receive(port int, frame []byte) []ctvectors.Output {
	r.Helper()
	r.Receive(fmt.Sprintf("p%d", port), frame)
	out := map[uint32][]string{}
	for _, n := range livePorts {
		for _, f := range r.Sent(fmt.Sprintf("p%d", n)) {
			out[uint32(n)] = append(out[uint32(n)], hex.EncodeToString(f))
		}
	}
	return taps(r.TB, out)
}

// connections is the dump, in order.
func (r *reference) connections() []string {
	r.Helper()
	lines := strings.FieldsFunc(r.Call("dpctl/dump-conntrack", "-s"), func(c rune) bool { return c == '\n' })
	slices.Sort(lines)
	return lines
}
