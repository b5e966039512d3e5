//go:build linux && (amd64 || arm64)

package confine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// child is the user of the confined process: nobody on Debian.
const child = 65534

// TestMain is also main of the confined child, which runs what TestConfined has inside.
func TestMain(m *testing.M) {
	if os.Getenv(keepEnv) != "" {
		keepAndTell()
	}
	c, err := Enter()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	inside = c
	os.Exit(m.Run())
}

var inside *Confinement // nil in the parent

// insideTests are those that the confined child runs.
var insideTests = map[string]func(*testing.T){
	"Status": insideStatus, "Refused": insideRefused, "State": insideState, "Runtime": insideRuntime,
}

// TestConfined starts the child, which runs all tests that belong inside.
func TestConfined(t *testing.T) {
	if inside != nil {
		for name, test := range insideTests {
			t.Run(name, test)
		}
		return
	}
	needsRoot(t)
	c, err := Command(Options{State: stateDirectory(t), UID: child, GID: child}, "/proc/self/exe", "-test.v", "-test.run=^TestConfined$")
	if err != nil {
		t.Fatal(err)
	}
	secret := bytes.Repeat([]byte("secret"), 2)
	c.Env = append(c.Env, fmt.Sprintf("CONFINE_TEST=%d %p", os.Getpid(), &secret[0]))
	out, err := c.CombinedOutput()
	t.Logf("%s", out)
	runtime.KeepAlive(secret)
	if err != nil {
		t.Fatal(err)
	}
	for name := range insideTests {
		if !strings.Contains(string(out), "--- PASS: TestConfined/"+name+" ") {
			t.Errorf("%s did not run", name)
		}
	}
}

// stateDirectory belongs to the child's user, who can also search those above it.
func stateDirectory(t *testing.T) string {
	t.Helper()
	state, err := os.MkdirTemp("", "antrail-confine-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(state) })
	if err := os.Chown(state, child, child); err != nil {
		t.Fatal(err)
	}
	return state
}

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() == 0 {
		return
	}
	if os.Getenv("ANTRAIL_REQUIRE_ALL") != "" {
		t.Fatal("needs root")
	}
	t.Skip("needs root")
}

// TestWithoutMounts: root without CAP_SYS_ADMIN gets an error, or a process that knows
// what is missing, as its options say.
func TestWithoutMounts(t *testing.T) {
	needsRoot(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for without, want := range map[bool]string{false: "mount namespace: operation not permitted", true: "missing: [\"no mount namespace"} {
		o := Options{State: stateDirectory(t), UID: child, GID: child, WithoutMounts: without}
		c, err := Command(o, "setpriv", "--bounding-set=-sys_admin", self, "-test.v", "-test.run=^TestConfined$/^Status$")
		if err != nil {
			t.Fatal(err)
		}
		if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%v, want %q: %s", err, want, out)
		}
	}
}

// TestCommandRefusals: options that cannot be met are refused before a process starts.
func TestCommandRefusals(t *testing.T) {
	for want, o := range map[string]Options{
		"both must be above 0": {State: t.TempDir(), GID: 1},
		"want an absolute":     {State: "state", UID: 1, GID: 1},
		"belongs to user 12":   {State: t.TempDir(), UID: 12, GID: 12},
	} {
		if _, err := Command(o, "true"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func insideStatus(t *testing.T) {
	if len(inside.Missing) > 0 {
		t.Errorf("missing: %q", inside.Missing)
	}
	threads, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(threads) == 0 {
		t.Fatal(threads, err)
	}
	for _, path := range threads {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(string(b)), " ")
		for _, want := range []string{
			"CapInh: 0000000000000000 CapPrm: 0000000000000000 CapEff: 0000000000000000 CapBnd: 0000000000000000 CapAmb: 0000000000000000",
			"NoNewPrivs: 1", "Seccomp: 2", "Uid: 65534 65534 65534 65534", "Gid: 65534 65534 65534 65534", "Groups: NStgid:",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q: %s", path, want, text)
			}
		}
	}
}

// openFor is the error of opening a file.
func openFor(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// insideRefused: each attempt is refused, by whichever protection comes first.
func insideRefused(t *testing.T) {
	var parent int
	var secret uintptr
	if _, err := fmt.Sscanf(os.Getenv("CONFINE_TEST"), "%d 0x%x", &parent, &secret); err != nil {
		t.Fatal(err)
	}
	socket := func(domain, kind, protocol int) error {
		fd, err := unix.Socket(domain, kind, protocol)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
	bare := func(call uintptr, args ...uintptr) error {
		args = append(args, 0, 0, 0, 0)
		if _, _, err := unix.Syscall6(call, args[0], args[1], args[2], args[3], 0, 0); err != 0 {
			return err
		}
		return nil
	}
	into := []unix.Iovec{{Base: new(byte), Len: 1}}
	for _, c := range []struct {
		what string
		err  error
		want error
	}{
		{"raw socket", socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP), unix.EPERM},
		{"packet socket", socket(unix.AF_PACKET, unix.SOCK_RAW, 0), unix.EPERM},
		{"XDP socket", socket(unix.AF_XDP, unix.SOCK_RAW, 0), unix.EPERM},
		{"TCP socket", socket(unix.AF_INET, unix.SOCK_STREAM, 0), unix.EPERM},
		{"nftables", socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER), unix.EPERM},
		{"ptrace", unix.PtraceAttach(parent), unix.EPERM},
		{"process_vm_readv", func() error {
			_, err := unix.ProcessVMReadv(parent, into, []unix.RemoteIovec{{Base: secret, Len: 1}}, 0)
			return err
		}(), unix.EPERM},
		{"/proc/PID/mem", openFor(fmt.Sprintf("/proc/%d/mem", parent), unix.O_RDONLY), unix.EACCES},
		{"own /proc/self/mem", openFor("/proc/self/mem", unix.O_RDWR), unix.EACCES},
		{"file in /tmp", openFor("/tmp/confined", unix.O_CREAT|unix.O_WRONLY), unix.EROFS},
		{"file in /dev/shm", openFor("/dev/shm/confined", unix.O_CREAT|unix.O_WRONLY), unix.EROFS},
		{"/dev/net/tun", openFor("/dev/net/tun", unix.O_RDWR), unix.EACCES},
		{"/dev/null", openFor("/dev/null", unix.O_RDWR), unix.EACCES},
		{"load a BPF program", bare(unix.SYS_BPF, unix.BPF_PROG_LOAD), unix.EPERM},
		{"make a BPF map", bare(unix.SYS_BPF, unix.BPF_MAP_CREATE), unix.EPERM},
		{"mount", unix.Mount("none", inside.State, "tmpfs", 0, ""), unix.EPERM},
		{"unshare", unix.Unshare(unix.CLONE_NEWUSER), unix.EPERM},
		{"setns", unix.Setns(0, 0), unix.EPERM},
		{"io_uring", bare(unix.SYS_IO_URING_SETUP, 1), unix.EPERM},
		{"signal the parent", unix.Kill(parent, 0), unix.EPERM},
		{"execute", exec.Command("/bin/true").Run(), unix.EACCES}, // /dev/null comes first
		{"execve", unix.Exec("/bin/true", nil, nil), unix.EPERM},
		{"executable memory", func() error {
			_, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_ANON|unix.MAP_PRIVATE)
			return err
		}(), unix.EPERM},
	} {
		t.Logf("%-20s %v", c.what, c.err)
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", c.what, c.err, c.want)
		}
	}
}

func insideState(t *testing.T) {
	f, err := os.Create(filepath.Join(inside.State, "connections"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(1 << 20); err != nil {
		t.Fatal(err)
	}
	m, err := unix.Mmap(int(f.Fd()), 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	copy(m, "written")
	if err := errors.Join(unix.Msync(m, unix.MS_SYNC), unix.Munmap(m)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(f.Name(), f.Name()+".old"); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(f.Name() + ".old")
	if err != nil || !bytes.HasPrefix(b, []byte("written")) {
		t.Fatalf("%.10q, %v", b, err)
	}
}

// insideRuntime: collections, threads, timers, epoll and signals work.
func insideRuntime(t *testing.T) {
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			runtime.LockOSThread() // a thread each, which ends with the goroutine
			kept := make([][]byte, 0, 64)
			for range 64 {
				kept = append(kept, make([]byte, 64<<10))
			}
			time.Sleep(time.Millisecond)
			runtime.GC()
			runtime.KeepAlive(kept)
		})
	}
	all.Wait()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() { time.Sleep(time.Millisecond); w.Write([]byte{1}) }()
	if n, err := r.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	got := make(chan os.Signal, 1)
	signal.Notify(got, unix.SIGUSR1)
	if err := unix.Kill(os.Getpid(), unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	<-got
}
