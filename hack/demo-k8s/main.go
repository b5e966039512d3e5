// Demo-k8s shows antrail under a real Kubernetes on this machine, and leaves nothing behind:
//
//	go run ./hack/demo-k8s -bin DIR -plugins DIR -images FILE,FILE -pod FILE
//
//	show.go     the steps, and when it waits for an interrupt
//	place.go    network namespaces, the underlay between them, processes
//	control.go  etcd, API server, controller manager, scheduler
//	node.go     a Node: containerd and kubelet in namespaces of their own
//	kubectl.go  commands to the API
//	checks.go   the checks, in their order; antrea.go, rolling.go and
//	            confined.go have the longer ones
//	leave.go    what must be gone at the end
//
// Every process lives in one of three network namespaces (antrail-demo-…), and all files lie
// below one directory. A Node's processes have a mount namespace in which /run, /etc, /opt and
// /var are the Node's own. The machine's links, addresses and rules are not touched. It needs
// root, Debian's containerd and runc.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// options are the command line's.
type options struct {
	bin, plugins   string // programs of Kubernetes, and CNI plugins
	images         string // archives of images, between commas
	pod            string // the pods' program, for requests from outside
	manifests, dir string
	keep           bool
}

func main() {
	var o options
	flag.StringVar(&o.bin, "bin", "", "directory with etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet and kubectl")
	flag.StringVar(&o.plugins, "plugins", "", "directory with the CNI plugins loopback, portmap and bandwidth")
	flag.StringVar(&o.images, "images", "", "archives of images, between commas: antrail, antrail-demo-pod and antrail-demo-pause")
	flag.StringVar(&o.pod, "pod", "", "the pods' program")
	flag.StringVar(&o.manifests, "manifests", "deploy/kustomize", "directory of the Kustomize bases")
	flag.StringVar(&o.dir, "dir", filepath.Join(os.TempDir(), "antrail-demo-k8s"), "directory for all files")
	flag.BoolVar(&o.keep, "keep", false, "wait for an interrupt before everything is taken down, also when a check fails")
	flag.Parse()
	if err := run(&o); err != nil {
		fmt.Fprintln(os.Stderr, "demo-k8s:", err)
		os.Exit(1)
	}
}

// run brings the cluster up, shows it and takes it down.
func run(o *options) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("namespaces and containers need root")
	}
	if err := o.wholePaths(); err != nil {
		return err
	}
	if err := nobodyElses(o.dir); err != nil {
		return err
	}
	began := time.Now()
	interrupts := newInterrupts(nextInterrupt)
	defer func() { interrupts.stop() }() // at the very end: no interrupt stops the cleanup
	c := newCluster(o)
	c.down() // what a killed run left
	defer func() {
		err = errors.Join(err, c.down(), c.leftovers())
		if err == nil {
			fmt.Printf("everything is gone; %.0f s in all\n", time.Since(began).Seconds())
		}
	}()
	fmt.Printf("A cluster of two Nodes in network namespaces, its files in %s. It takes about three minutes;\n"+
		"an interrupt takes everything down. To look at it at the end, or when a check fails: hack/demo-k8s/run -keep\n", o.dir)
	s := show{
		up: c.up, check: c.check, uninstall: c.uninstall,
		failed: func() { c.tellLogs(os.Stderr) }, look: c.tellLook,
		keep: o.keep, interrupts: interrupts,
	}
	return s.run()
}

// up starts the cluster in four steps, and prints how long each took.
func (c *cluster) up(ctx context.Context) error {
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"control plane", c.upControl}, {"two Nodes", c.upNodes}, {"antrail", c.installAntrail}, {"objects", c.applyObjects},
	} {
		fmt.Printf("%-16s ", step.what)
		at := time.Now()
		if err := step.do(ctx); err != nil {
			fmt.Println("FAIL")
			return fmt.Errorf("%s: %w", step.what, err)
		}
		fmt.Printf("up after %.1f s\n", time.Since(at).Seconds())
	}
	return nil
}

// tellLook says how to look at the cluster while it is kept.
func (c *cluster) tellLook() {
	fmt.Printf("logs: %s, %s\nKUBECONFIG=%s nsenter --net=%s %s/kubectl …; interrupt to go on\n",
		c.file("*.log"), c.file("antrail-demo-*/pod-logs"), c.kubeconfig(), netnsPath(controlNS), c.bin)
}

// nobodyElses returns an error if another user could have written a directory. Its files name
// processes to end and mounts to remove. A missing directory is fine.
func nobodyElses(dir string) error {
	st, err := os.Lstat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if owner := st.Sys().(*syscall.Stat_t).Uid; !st.IsDir() || owner != uint32(os.Geteuid()) || st.Mode()&0o022 != 0 {
		return fmt.Errorf("%s can be written by others: want a directory that only this user can write; remove it, or name another with -dir", dir)
	}
	return nil
}

// wholePaths makes the paths absolute, for other mount namespaces.
func (o *options) wholePaths() error {
	images := strings.Split(o.images, ",")
	paths := []*string{&o.bin, &o.plugins, &o.pod, &o.manifests, &o.dir}
	for i := range images {
		paths = append(paths, &images[i])
	}
	for _, p := range paths {
		if *p == "" {
			return errors.New("-bin, -plugins, -images and -pod are needed")
		}
		whole, err := filepath.Abs(*p)
		if err != nil {
			return err
		}
		*p = whole
	}
	o.images = strings.Join(images, ",")
	return nil
}
