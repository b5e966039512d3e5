package ports

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/packet"
)

// mapped is the kilobytes of this process's address space, and those in memory.
func mapped(t *testing.T) (size, resident int) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var fields [2]int
	for i, f := range strings.Fields(string(b))[:2] {
		for _, c := range f {
			fields[i] = 10*fields[i] + int(c-'0')
		}
	}
	page := os.Getpagesize() / 1024
	return fields[0] * page, fields[1] * page
}

// A pool costs what is used of it, and is given back when a frame that is held
// is too.
func TestLargePool(t *testing.T) {
	const frames = 4096 // 265 MB
	const kilobytes = frames * packet.LargeBuffer / 1024
	size, resident := mapped(t)
	one := make([]*packet.Frame, 1)
	func() {
		p, err := LargePool(frames)
		if err != nil {
			t.Fatal(err)
		}
		if p.Free() != frames || p.Get(one) != 1 || !one[0].SetLen(65535+packet.EthernetLen) {
			t.Fatalf("%d frames free, the first takes %d bytes", p.Free(), one[0].Tailroom())
		}
	}()
	if s, r := mapped(t); s-size < kilobytes || r-resident > kilobytes/4 {
		t.Errorf("%d kB mapped and %d kB used, want %d and next to nothing", s-size, r-resident, kilobytes)
	}
	runtime.GC()
	time.Sleep(10 * time.Millisecond)
	one[0].Bytes()[1000] = 1 // still there
	packet.Release(one)
	one[0] = nil
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		runtime.GC()
		if s, _ := mapped(t); s-size < kilobytes/4 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the memory is not given back")
		}
	}
}
