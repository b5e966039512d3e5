// Vm boots a kernel in a virtual machine, without disk and network, and runs commands in it:
//
//	go run ./hack/vm -kernel DIR [-cards] [-add FILE:PATH] [-program FILE:PATH] ... -- COMMAND [ARG...] [-- COMMAND...]
//
//	main.go      the first root of the kernel, and the machine
//	modules.go   modules of the kernel, in the order in which they load
//	init/        the first process inside, which runs the commands
//
// DIR is an unpacked Debian package of a kernel (hack/vm/kernel). The commands run one after the
// other. Words NAME=VALUE before a command are its environment, cd=DIR its directory. Their
// output appears here. The exit code is 0 if all commands exit with 0. QEMU uses KVM if the
// processor has it; otherwise it translates, which is slow.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/antrail/antrail/hack/filetree"
)

// list is a flag that is given several times.
type list []string

func (l *list) String() string     { return strings.Join(*l, " ") }
func (l *list) Set(v string) error { *l = append(*l, v); return nil }

// order is what the command line asks for.
type order struct {
	kernel, init   string
	memory         int
	limit          time.Duration
	cards          bool
	adds, programs list
	commands       []string
}

func main() {
	var o order
	flag.StringVar(&o.kernel, "kernel", "", "directory of an unpacked kernel package")
	flag.StringVar(&o.init, "init", "", "the first process, built of hack/vm/init")
	flag.IntVar(&o.memory, "memory", 1024, "the machine's memory, MiB")
	flag.DurationVar(&o.limit, "limit", 10*time.Minute, "the most that all may take")
	flag.BoolVar(&o.cards, "cards", false, "two network cards on one wire, 52:54:00:00:00:01 and …:02")
	flag.Var(&o.adds, "add", "FILE:PATH")
	flag.Var(&o.programs, "program", "FILE:PATH, with its shared libraries")
	flag.Parse()
	o.commands = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "vm:", err)
		os.Exit(1)
	}
}

func (o *order) run(ctx context.Context) error {
	if o.kernel == "" || o.init == "" || len(o.commands) == 0 {
		return errors.New("-kernel, -init and a command are needed")
	}
	var images []string
	for _, place := range []string{"boot/vmlinuz-*", "usr/lib/modules/*/vmlinuz"} { // older packages, and newer ones
		found, err := filepath.Glob(filepath.Join(o.kernel, place))
		if err != nil {
			return err
		}
		images = append(images, found...)
	}
	if len(images) != 1 {
		return fmt.Errorf("%s has %d kernels: want one", o.kernel, len(images))
	}
	root, err := o.root()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "antrail-vm-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	initrd := filepath.Join(dir, "root.cpio")
	if err := os.WriteFile(initrd, root, 0o600); err != nil {
		return err
	}
	return o.boot(ctx, images[0], initrd)
}

// root is the machine's first root.
func (o *order) root() ([]byte, error) {
	tree := filetree.Tree{}
	for _, a := range append(o.adds, o.init+":/init") {
		if err := tree.Add(a); err != nil {
			return nil, err
		}
	}
	for _, p := range o.programs {
		if err := tree.AddProgram(p, "/"); err != nil {
			return nil, err
		}
	}
	found, err := findModules(o.kernel)
	if err != nil {
		return nil, err
	}
	order, err := found.inOrder(wanted)
	if err != nil {
		return nil, err
	}
	for i, m := range order {
		tree[fmt.Sprintf("modules/%03d-%s", i, m.name)] = filetree.Entry{Content: m.content}
	}
	tree["commands"] = filetree.Entry{Content: []byte(strings.Join(o.commands, "\x00"))}
	return tree.CPIO(), nil
}

// wellDone is the last line of the first process (hack/vm/init) if everything succeeded.
const wellDone = "vm: all is well"

// way is how QEMU runs the machine.
type way struct {
	name string
	args []string
}

var (
	onKVM = way{"on KVM", []string{"-accel", "kvm", "-cpu", "host", "-smp", "2"}}

	// translated has a clock that counts instructions, one nanosecond each, and jumps while all
	// threads sleep. So no timer inside is late, however slow this machine is, and waiting takes
	// no time. It needs a single processor. QEMU 7 emulates CMPXCHG16B wrongly, and Linux 6.12
	// dies of it.
	translated = way{"translated by QEMU, in a time of its own: no KVM here", []string{"-accel", "tcg", "-icount", "shift=0,sleep=off", "-cpu", "qemu64,-cx16"}}
)

// wire are two cards on one wire. Their queues take the kernel's DMA addresses, which
// zero-copy needs (VIRTIO_F_ACCESS_PLATFORM); they pass any VLAN.
var wire = []string{
	"-netdev", "hubport,hubid=0,id=n1", "-device", "virtio-net-pci,netdev=n1,mac=52:54:00:00:00:01,disable-legacy=on,iommu_platform=on,ctrl_vlan=off",
	"-netdev", "hubport,hubid=0,id=n2", "-device", "virtio-net-pci,netdev=n2,mac=52:54:00:00:00:02,disable-legacy=on,iommu_platform=on,ctrl_vlan=off",
}

// boot runs the machine until its first process has ended.
func (o *order) boot(ctx context.Context, image, initrd string) error {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	way := translated
	if hasKVM() {
		way = onKVM
	}
	fmt.Println("vm:", way.name)
	if o.cards {
		way.args = append(way.args, wire...)
	}
	q := exec.CommandContext(ctx, "qemu-system-x86_64", append(way.args, "-m", fmt.Sprint(o.memory),
		"-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", "stdio", "-kernel", image, "-initrd", initrd,
		"-append", "console=ttyS0 quiet panic=-1 no_timer_check")...)
	q.Stderr = os.Stderr
	out, err := q.StdoutPipe()
	if err != nil {
		return err
	}
	if err := q.Start(); err != nil {
		return err
	}
	well := show(out)
	err = q.Wait()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("stopped: %w", ctx.Err())
	case err != nil:
		return fmt.Errorf("qemu-system-x86_64: %w", err)
	case !well:
		return errors.New("a command failed in the virtual machine: see its output above")
	}
	return nil
}

// show copies the console's output, and says whether everything succeeded.
func show(console io.Reader) (well bool) {
	lines := bufio.NewScanner(console)
	for lines.Scan() {
		line := strings.TrimRight(lines.Text(), "\r")
		well = well || line == wellDone
		fmt.Println(line)
	}
	return well
}

// hasKVM reports whether guests can run on the processor itself. A hypervisor may offer /dev/kvm
// without that, to kernels that are made for it. It emulates other kernels some hundred times
// slower than QEMU translates.
func hasKVM() bool {
	if text, err := os.ReadFile("/proc/cpuinfo"); err != nil || !strings.Contains(string(text), " vmx ") && !strings.Contains(string(text), " svm ") {
		return false
	}
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	f.Close()
	return true
}
