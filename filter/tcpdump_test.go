package filter

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"golang.org/x/net/bpf"
)

// tcpdump compiles an expression by libpcap; nil for one that it finds no frame
// can meet. The optimizer is left out (-O): for one expression of a random run that
// of libpcap 1.10.3 had dropped the comparison of an address's first two bytes.
func tcpdump(t *testing.T, expression string) *bpf.VM {
	t.Helper()
	out, err := exec.Command("tcpdump", "-O", "-ddd", "-y", "EN10MB", expression).Output()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && strings.Contains(string(exit.Stderr), "rejects all packets"):
		return nil
	case err != nil:
		t.Fatalf("tcpdump %q: %v", expression, err)
	}
	lines := bufio.NewScanner(strings.NewReader(string(out)))
	lines.Scan() // how many there are
	var raw []bpf.RawInstruction
	for lines.Scan() {
		var i bpf.RawInstruction
		if _, err := fmt.Sscan(lines.Text(), &i.Op, &i.Jt, &i.Jf, &i.K); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		raw = append(raw, i)
	}
	program, ok := bpf.Disassemble(raw)
	if !ok || len(program) == 0 {
		t.Fatalf("%q: %d instructions", expression, len(program))
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

// TestAgainstTcpdump compiles random expressions both ways and asks both about
// random frames.
func TestAgainstTcpdump(t *testing.T) {
	if _, err := exec.LookPath("tcpdump"); err != nil {
		t.Skip("tcpdump is not installed")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	wanted := 0
	for range 250 {
		expression := randomExpression(r, r.IntN(4))
		ours, theirs := compile(t, expression), tcpdump(t, expression)
		for range 200 {
			b := randomFrame(r)
			n, err := 0, error(nil)
			if theirs != nil {
				n, err = theirs.Run(b)
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := n != 0; ours.Match(b) != want {
				t.Fatalf("%q: %x is wanted by tcpdump: %v", expression, b, want)
			} else if want {
				wanted++
			}
		}
	}
	if wanted < 5000 {
		t.Errorf("%d frames of 50,000 were wanted", wanted)
	}
}

// randomFrame is a frame of few addresses and ports, long enough for every
// offset that the expressions ask for.
func randomFrame(r *rand.Rand) []byte {
	port := func() uint16 { return []uint16{53, 80, 443, 1000, 60000}[r.IntN(5)] }
	o := pt.Options{SrcPort: port(), DstPort: port(), TCPFlags: uint16(r.IntN(64)), TTL: uint8(1 + r.IntN(20)), Payload: make([]byte, 40+r.IntN(20))}
	v4 := []string{"10.0.0.1", "10.0.0.2", "10.0.0.9", "224.0.0.5"}
	o.Src, o.Dst = pt.Addr(v4[r.IntN(3)]), pt.Addr(v4[r.IntN(4)])
	six := o
	v6 := []string{"fd00::1", "fd00::2", "fd01::9", "ff02::1"}
	six.Src, six.Dst = pt.Addr(v6[r.IntN(3)]), pt.Addr(v6[r.IntN(4)])
	var b []byte
	switch r.IntN(6) {
	case 0:
		b = pt.TCP4(o)
	case 1:
		b = pt.UDP4(o)
	case 2:
		b = pt.TCP6(six)
	case 3:
		b = pt.UDP6(six)
	case 4:
		b = pt.UDP4(o)
		b[23] = []byte{1, 2, 132}[r.IntN(3)]
	default:
		b = frames()["arp"]
		b[31], b[41] = byte(1+r.IntN(3)), byte(1+r.IntN(10))
	}
	if r.IntN(5) == 0 && packet.Ethernet(b).Type() == packet.EtherTypeIPv4 {
		b[21] = byte(r.IntN(3)) // an offset
	}
	copy(b, []byte{[]byte{2, 255, 1}[r.IntN(3)], 0, 0, 0, 0, byte(1 + r.IntN(2))})
	return b
}
