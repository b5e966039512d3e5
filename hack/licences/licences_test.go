package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNoticesAreCurrent compares the file with what the programs link.
func TestNoticesAreCurrent(t *testing.T) {
	if err := run("../../THIRD-PARTY-NOTICES", true); err != nil {
		t.Error(err)
	}
}

// TestIdentify reads licences that this machine has, and sentences that other licences
// have.
func TestIdentify(t *testing.T) {
	read := func(file string) string {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const bsd = "Redistribution and use in source and binary forms, with or without\n// modification, are permitted provided that the following conditions are\n// met:\n"
	for _, c := range []struct {
		text string
		want []string
	}{
		{read("../../LICENSE"), []string{"Apache-2.0"}},
		{bsd, []string{"BSD-2-Clause"}},
		{bsd + "3. The names of its contributors may not be used to endorse or promote products derived from this software without specific prior written permission.", []string{"BSD-3-Clause"}},
		{bsd + "All advertising materials mentioning features or use of this software must display the following: x", []string{"BSD-4-Clause"}},
		{"                 GNU GENERAL PUBLIC LICENSE\n   Version 2, June 1991", []string{"GPL, LGPL or AGPL"}},
		{read("../../LICENSE") + "\n“Commons Clause” License Condition v1.0", []string{"Apache-2.0", "Commons Clause"}},
		{"Mozilla Public License Version 2.0", []string{"MPL"}},
		{"Do what you like.", nil},
	} {
		if got := identify(c.text); !slices.Equal(got, c.want) {
			t.Errorf("%.60q: %q, want %q", c.text, got, c.want)
		}
	}
}

// fakeModule is a module of files in a directory of its own.
func fakeModule(t *testing.T, files map[string]string) *module {
	t.Helper()
	m := &module{path: "example.org/m", version: "v1.0.0", root: t.TempDir(), packages: map[string]struct{}{}}
	for name, text := range files {
		at := filepath.Join(m.root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// TestRefused: a module with a licence that is not allowed, that is not known, or with
// none is refused by a sentence that names it.
func TestRefused(t *testing.T) {
	const isc = "Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted, provided that the above copyright notice and this permission notice appear in all copies."
	for want, m := range map[string]*module{
		"example.org/m v1.0.0 has no licence file":                                     fakeModule(t, map[string]string{"m.go": "package m", "NOTICE": "by somebody"}),
		"example.org/m v1.0.0 has the licence GPL, LGPL or AGPL in its file COPYING":   fakeModule(t, map[string]string{"COPYING": "GNU General Public License"}),
		"example.org/m v1.0.0 has an unknown licence in its file LICENSE.md":           fakeModule(t, map[string]string{"LICENSE.md": "Ask me first."}),
		"example.org/m v1.0.0 has the licence MPL in its file third_party/x/LICENSE, ": fakeModule(t, map[string]string{"LICENSE": isc, "third_party/x/LICENSE": "Mozilla Public License"}),
	} {
		m.packages[filepath.Join(m.root, "third_party/x")] = struct{}{}
		if err := os.MkdirAll(filepath.Join(m.root, "third_party/x"), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := notices([]*module{m}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	good := fakeModule(t, map[string]string{"LICENSE": isc, "other/LICENSE": "Mozilla Public License"}) // no package of other is linked
	text, err := notices([]*module{good})
	if err != nil || !strings.Contains(string(text), "example.org/m v1.0.0: ISC\n") || !strings.Contains(string(text), isc) {
		t.Errorf("%v:\n%s", err, text)
	}
}

// TestUnreachable: with an empty module cache and no proxy nothing is said of licences.
func TestUnreachable(t *testing.T) {
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOPROXY", "off")
	if err := run("../../THIRD-PARTY-NOTICES", true); !errors.Is(err, errUnreachable) {
		t.Errorf("%v, want %v", err, errUnreachable)
	}
}
