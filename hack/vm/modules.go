package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// wanted are the modules of a Debian kernel that antrail and its links need. A machine loads them
// on demand.
var wanted = []string{
	"virtio_pci", "virtio_net", "veth", "tun", "bridge", "8021q", "bonding", "ip_gre", "ip6_gre", "vxlan", "geneve",
	"sch_ingress", "cls_bpf", "nf_tables", "nft_ct", "nft_nat", "nft_masq", "nft_chain_nat", "nft_fib_inet", "nft_limit", "nft_reject_inet", "nft_dup_netdev", "nft_fwd_netdev",
}

// modules maps a module's name, with underscores, to its path.
type modules map[string]string

// findModules finds the modules of an unpacked kernel package.
func findModules(kernel string) (modules, error) {
	all := modules{}
	err := filepath.WalkDir(kernel, func(path string, _ fs.DirEntry, err error) error {
		if name, _, is := strings.Cut(filepath.Base(path), ".ko"); is {
			all[strings.ReplaceAll(name, "-", "_")] = path
		}
		return err
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s has no modules of a kernel", kernel)
	}
	return all, err
}

// module is a module to load.
type module struct {
	name    string
	content []byte
}

// inOrder returns modules after those that they need, each once. It leaves out those that are
// built into the kernel.
func (m modules) inOrder(names []string) (order []module, err error) {
	seen := map[string]bool{}
	var add func(name string) error
	add = func(name string) error {
		name = strings.ReplaceAll(name, "-", "_")
		path, ok := m[name]
		if seen[name] || !ok {
			return nil
		}
		seen[name] = true
		content, err := read(path)
		if err != nil {
			return err
		}
		needs, err := needsOf(content)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, n := range needs {
			if err := add(n); err != nil {
				return err
			}
		}
		order = append(order, module{name, content})
		return nil
	}
	for _, name := range names {
		if err := add(name); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// read reads a module, which may be compressed by xz.
func read(path string) ([]byte, error) {
	if strings.HasSuffix(path, ".xz") {
		return exec.Command("xz", "--decompress", "--stdout", path).Output()
	}
	return os.ReadFile(path)
}

// needsOf returns the modules that a module needs: "depends" and "softdep" with "pre" of its
// section .modinfo.
func needsOf(content []byte) (names []string, err error) {
	f, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	section := f.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("no section .modinfo")
	}
	text, err := section.Data()
	if err != nil {
		return nil, err
	}
	for _, line := range strings.Split(string(text), "\x00") {
		if list, is := strings.CutPrefix(line, "depends="); is {
			names = append(names, strings.FieldsFunc(list, func(r rune) bool { return r == ',' })...)
		}
		if list, is := strings.CutPrefix(line, "softdep=pre:"); is {
			before, _, _ := strings.Cut(list, "post:")
			names = append(names, strings.Fields(before)...)
		}
	}
	return names, nil
}
