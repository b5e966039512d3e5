package preflight

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// lacks lists what older kernels do not do for an agent, newest version first.
var lacks = []struct {
	major, minor int
	what         string
}{
	{6, 8, "driver afxdp completes pods' checksums itself"},
	{6, 6, "connections are not offloaded, and AF_XDP takes an MTU up to 3822 only"},
	{6, 2, "the switch and pods cut UDP's large segments themselves"},
	{5, 16, "nftables has no egress hook, without which the agent does not start"},
}

// oldest is the first kernel that an agent runs on: the last entry of lacks.
const oldest = "Linux 5.16"

// levelOf says what a kernel release lacks.
func levelOf(release string) Line {
	const check = "kernel"
	major, minor, err := version(release)
	if err != nil {
		return Line{Warn, check, err.Error(), oldest + " or newer"}
	}
	var missing []string
	state := OK
	for i, l := range lacks {
		if major > l.major || major == l.major && minor >= l.minor {
			continue
		}
		missing = append(missing, fmt.Sprintf("%d.%d: %s", l.major, l.minor, l.what))
		if state = Warn; i == len(lacks)-1 {
			state = Fail
		}
	}
	if state == OK {
		return ok(check, "Linux %s", release)
	}
	return Line{state, check, "Linux " + release, "before " + strings.Join(missing, "; before ")}
}

// kernel checks the kernel's version.
func kernel(*Config) Line {
	const check = "kernel"
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return Line{Warn, check, err.Error(), "none"}
	}
	return levelOf(unix.ByteSliceToString(u.Release[:]))
}

// version is the first two numbers of a kernel release.
func version(release string) (major, minor int, err error) {
	if n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor); n < 2 {
		return 0, 0, fmt.Errorf("%q is not a Linux release (MAJOR.MINOR expected)", release)
	}
	return major, minor, nil
}

func packetSocket(*Config) Line {
	const check = "packet sockets"
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1)
		unix.Close(fd)
	}
	if err != nil {
		return Line{Fail, check, err.Error(), "a kernel with CONFIG_PACKET, and CAP_NET_RAW"}
	}
	return ok(check, "with the virtio-net header")
}

func xdpSocket(*Config) Line {
	const check = "AF_XDP"
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW, 0)
	if err != nil {
		return Line{Warn, check, err.Error(), "a kernel with CONFIG_XDP_SOCKETS; until then no port can be on AF_XDP"}
	}
	unix.Close(fd)
	return ok(check, "available")
}

func programs(*Config) Line {
	const check = "BPF programs"
	for _, t := range []ebpf.ProgramType{ebpf.XDP, ebpf.SchedCLS} {
		if err := features.HaveProgramType(t); err != nil {
			return Line{Fail, check, fmt.Sprintf("%v: %v", t, err), "a kernel with CONFIG_BPF_SYSCALL, and CAP_SYS_ADMIN"}
		}
	}
	return ok(check, "XDP and traffic control")
}

// tcx queries the programs at the loopback's ingress. A kernel without tcx does not know
// the query.
func tcx(*Config) Line {
	const check = "tcx"
	_, err := link.QueryPrograms(link.QueryOptions{Target: 1, Attach: ebpf.AttachTCXIngress})
	if err != nil {
		return Line{Warn, check, "not available: " + err.Error(), "Linux 6.6 or newer; until then nothing is offloaded"}
	}
	return ok(check, "available")
}

func tun(*Config) Line {
	const check, file = "tun", "/dev/net/tun"
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return Line{Fail, check, err.Error(), "modprobe tun; in a container, give it " + file}
	}
	f.Close()
	return ok(check, file)
}

func nft(*Config) Line {
	const check = "nftables"
	if _, err := ruleset(); err != nil {
		return Line{Fail, check, err.Error(), "install nftables; a kernel with CONFIG_NF_TABLES"}
	}
	return ok(check, "nft list ruleset works")
}

// ruleset is the Node's nftables rules as text.
func ruleset() (string, error) {
	out, err := exec.Command("nft", "list", "ruleset").Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("nft list ruleset: %s", strings.TrimSpace(string(exit.Stderr)))
	}
	return string(out), err
}
