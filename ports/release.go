//go:build linux

package ports

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// KnowsUDPSegments says whether the virtio-net header of this kernel's packet sockets can
// describe large segments of UDP (Linux 6.2). Otherwise packet sockets can neither send nor
// receive them.
var KnowsUDPSegments = sync.OnceValue(func() bool {
	var u unix.Utsname
	return unix.Uname(&u) == nil && atLeast(unix.ByteSliceToString(u.Release[:]), 6, 2)
})

// atLeast compares the first two numbers of a kernel's release. It returns false if the release
// has none.
func atLeast(release string, major, minor int) bool {
	var a, b int
	n, _ := fmt.Sscanf(release, "%d.%d", &a, &b)
	return n == 2 && (a > major || a == major && b >= minor)
}
