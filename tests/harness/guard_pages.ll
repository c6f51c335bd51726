@next = internal global i64 {first}

declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @mprotect(ptr, i64, i32)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.trap()

define internal void @fill(i64 %from, i64 %to) {{
  %bytes = sub i64 %to, %from
  %p = inttoptr i64 %from to ptr
  call void @llvm.memset.p0.i64(ptr %p, i8 {pattern}, i64 %bytes, i1 false)
  ret void
}}

define internal void @look(i64 %from, i64 %to) {{
entry:
  br label %head
head:
  %at = phi i64 [ %from, %entry ], [ %following, %next ]
  %more = icmp ult i64 %at, %to
  br i1 %more, label %body, label %done
body:
  %p = inttoptr i64 %at to ptr
  %byte = load i8, ptr %p
  %same = icmp eq i8 %byte, {pattern}
  br i1 %same, label %next, label %written
written:
  call void @llvm.trap()
  unreachable
next:
  %following = add i64 %at, 1
  br label %head
done:
  ret void
}}

; Where the size of what begins on a page is kept; 0 if nothing does.
define internal ptr @size_of(i64 %address) {{
  %offset = sub i64 %address, {base}
  %page = lshr i64 %offset, {page_bits}
  %bytes = shl i64 %page, 3
  %place = add i64 %bytes, {table}
  %p = inttoptr i64 %place to ptr
  ret ptr %p
}}

; The first address behind the pages of what begins on the page of an address.
define internal i64 @end_of(i64 %address, i64 %size) {{
  %start = and i64 %address, -{page}
  %last = add i64 %address, %size
  %up = add i64 %last, {page_less}
  %end = and i64 %up, -{page}
  ret i64 %end
}}

; So many bytes that end, or begin, where pages do; the offset says how far behind the beginning of a page.
define internal i64 @new(i64 %size, i64 %offset, i1 %zeros) {{
  %reach = add i64 %size, %offset
  %up = add i64 %reach, {page_less}
  %room = and i64 %up, -{page}
  %step = add i64 %room, {page}
  %start = atomicrmw add ptr @next, i64 %step seq_cst
  %end = add i64 %start, %room
  %fits = icmp ult i64 %end, {limit}
  %small = icmp ult i64 %size, {space}
  %ok = and i1 %fits, %small
  br i1 %ok, label %open, label %failed
open:
  %p = inttoptr i64 %start to ptr
  %refused = call i32 @mprotect(ptr %p, i64 %room, i32 {read_write})
  %opened = icmp eq i32 %refused, 0
  br i1 %opened, label %place, label %failed
place:
  %at_end = sub i64 %end, %size
  %at_start = add i64 %start, %offset
  %address = select i1 {edge_is_end}, i64 %at_end, i64 %at_start
  %table = call ptr @size_of(i64 %address)
  store i64 %size, ptr %table
  %behind = add i64 %address, %size
  %inner = select i1 %zeros, i64 %address, i64 %behind
  call void @fill(i64 %start, i64 %inner)
  call void @fill(i64 %behind, i64 %end)
  ret i64 %address
failed:
  ret i64 0
}}

define internal void @release(i64 %address) {{
  %table = call ptr @size_of(i64 %address)
  %size = load i64, ptr %table
  %known = icmp ne i64 %size, 0
  br i1 %known, label %check, label %unknown
unknown:
  call void @llvm.trap()
  unreachable
check:
  store i64 0, ptr %table
  %start = and i64 %address, -{page}
  %end = call i64 @end_of(i64 %address, i64 %size)
  %behind = add i64 %address, %size
  call void @look(i64 %start, i64 %address)
  call void @look(i64 %behind, i64 %end)
  %bytes = sub i64 %end, %start
  %p = inttoptr i64 %start to ptr
  %mapped = call ptr @mmap(ptr %p, i64 %bytes, i32 {no_access}, i32 {again}, i32 -1, i64 0)
  ret void
}}

define internal i1 @is_ours(i64 %address) {{
  %offset = sub i64 %address, {base}
  %found = icmp ult i64 %offset, {space}
  ret i1 %found
}}

define internal i64 @at_least_one(i64 %size) {{
  %none = icmp eq i64 %size, 0
  %found = select i1 %none, i64 1, i64 %size
  ret i64 %found
}}

define ptr @guard_malloc(ptr %context, i64 %wanted) {{
  %size = call i64 @at_least_one(i64 %wanted)
  %address = call i64 @new(i64 %size, i64 0, i1 false)
  %p = inttoptr i64 %address to ptr
  ret ptr %p
}}

define ptr @guard_calloc(ptr %context, i64 %count, i64 %each) {{
  %wanted = mul i64 %count, %each
  %size = call i64 @at_least_one(i64 %wanted)
  %address = call i64 @new(i64 %size, i64 0, i1 true)
  %p = inttoptr i64 %address to ptr
  ret ptr %p
}}

define void @guard_free(ptr %context, ptr %p, i64 %size) {{
  %address = ptrtoint ptr %p to i64
  %ours = call i1 @is_ours(i64 %address)
  br i1 %ours, label %here, label %elsewhere
here:
  call void @release(i64 %address)
  ret void
elsewhere:
  %free = inttoptr i64 {old_free} to ptr
  call void %free(ptr %context, ptr %p, i64 %size)
  ret void
}}

define ptr @guard_realloc(ptr %context, ptr %p, i64 %wanted) {{
  %address = ptrtoint ptr %p to i64
  %ours = call i1 @is_ours(i64 %address)
  br i1 %ours, label %here, label %elsewhere
elsewhere:
  %realloc = inttoptr i64 {old_realloc} to ptr
  %moved = call ptr %realloc(ptr %context, ptr %p, i64 %wanted)
  ret ptr %moved
here:
  %fresh = call ptr @guard_malloc(ptr %context, i64 %wanted)
  %failed = icmp eq ptr %fresh, null
  br i1 %failed, label %nothing, label %copy
nothing:
  ret ptr null
copy:
  %table = call ptr @size_of(i64 %address)
  %before = load i64, ptr %table
  %less = icmp ult i64 %before, %wanted
  %bytes = select i1 %less, i64 %before, i64 %wanted
  call void @llvm.memcpy.p0.p0.i64(ptr %fresh, ptr %p, i64 %bytes, i1 false)
  call void @release(i64 %address)
  ret ptr %fresh
}}

; What uses it begins at the first line of the cache from 127 bytes on, and needs {more} bytes less.
define i64 @guard_room(i64 %wanted) {{
  %used = sub i64 %wanted, {more}
  %up = add i64 %used, {aligned_less}
  %lines = and i64 %up, -{aligned}
  %size = add i64 %lines, {more_less}
  %offset = select i1 {edge_is_end}, i64 0, i64 1
  %address = call i64 @new(i64 %size, i64 %offset, i1 false)
  ret i64 %address
}}

define void @guard_give_back(i64 %address) {{
  call void @release(i64 %address)
  ret void
}}
