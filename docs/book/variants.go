package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/antrail/antrail/agent/answer"
)

// Tables that the sample does not have, because no feature of it needs them, are
// shown as bookNode would have them with other features.

// variant is a change of bookNode's NodeConfig, as texts in it and what stands in
// their place; told is how the page says it.
type variant struct {
	table, told string
	changes     map[string]string
}

var variants = []variant{
	{"DSRServiceMark", "`features: {LoadBalancerModeDSR: true}` and `defaultLoadBalancerMode: dsr`",
		map[string]string{"AntreaProxy: true,": "AntreaProxy: true, LoadBalancerModeDSR: true,", "\n  packetInRate:": "\n  defaultLoadBalancerMode: dsr\n  packetInRate:"}},
	{"DNAT", "`features: {AntreaProxy: false}`", map[string]string{"AntreaProxy: true,": "AntreaProxy: false,"}},
}

// rehearse makes bookNode with the change.
func (v *variant) rehearse(top string) (*answer.Rehearsal, error) {
	dir, err := os.MkdirTemp("", "antrail-book-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	files, err := filepath.Glob(filepath.Join(top, objects, "*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err == nil && filepath.Base(path) == bookNode+".yaml" {
			text, err = v.change(text)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(path)), text, 0o600)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return answer.Rehearse(dir, bookNode)
}

func (v *variant) change(text []byte) ([]byte, error) {
	for was, is := range v.changes {
		if !bytes.Contains(text, []byte(was)) {
			return nil, fmt.Errorf("there is no %q to change for %s", was, v.table)
		}
		text = bytes.Replace(text, []byte(was), []byte(is), 1)
	}
	return text, nil
}
