// SPDX-License-Identifier: GPL-2.0-only
/*
 * citcat: tells a bus monitor the state of the processor, then starts and stops a traced section.
 *
 * The state goes to a window of physical memory that was kept away from the kernel at boot
 * (memmap=64K$0x6000000), see uapi/citcat_dump.h for its layout and docs/driver.md for the use.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/capability.h>
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/fs.h>
#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/lockdep.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/security.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>
#include <asm/special_insns.h>

#include "citcat.h"
#include "uapi/citcat_ioctl.h"

static ulong phys;
module_param(phys, ulong, 0444);
MODULE_PARM_DESC(phys, "physical base of the window, reserved by memmap= or reserve= (needed)");

static ulong size = 0x10000;
module_param(size, ulong, 0444);
MODULE_PARM_DESC(size, "bytes of the window, at least 32768 (default 65536)");

static void __iomem *window;
static struct resource *claim;
static atomic_t controlled = ATOMIC_INIT(0);

/* Guards what follows, and that one dump or marker is written at a time. */
static DEFINE_MUTEX(trace_lock);
static u32 segments;
static bool running;
static bool flush_caches = true;
static u32 redump_every_ms;
/*
 * When the timers below are meant to go off. One that was set again may be on its way already and
 * wait for the lock: it finds here that its time has not come.
 */
static bool stop_wanted;
static unsigned long stop_at, redump_at;

static void stop_work_run(struct work_struct *work);
static DECLARE_DELAYED_WORK(stop_work, stop_work_run);
static void redump_work_run(struct work_struct *work);
static DECLARE_DELAYED_WORK(redump_work, redump_work_run);

static void set_timers(u32 stop_after_ms)
{
	stop_wanted = stop_after_ms;
	if (stop_wanted) {
		stop_at = jiffies + msecs_to_jiffies(stop_after_ms);
		mod_delayed_work(system_wq, &stop_work, msecs_to_jiffies(stop_after_ms));
	}
	if (redump_every_ms) {
		redump_at = jiffies + msecs_to_jiffies(redump_every_ms);
		mod_delayed_work(system_wq, &redump_work, msecs_to_jiffies(redump_every_ms));
	}
}

/* Whether a dump can be made. What it holds until end_dump() keeps it so: inside nothing may fail. */
static int begin_dump(void)
{
	lockdep_assert_held(&trace_lock);
	citcat_dump_memory_map(window);
	cpus_read_lock();
	if (num_online_cpus() == 1)
		return 0;
	pr_err("%u processors are online; a trace needs one: boot with maxcpus=1 or take the others offline\n",
	       num_online_cpus());
	cpus_read_unlock();
	return -EBUSY;
}

static void end_dump(void)
{
	unsigned long flags;

	segments++;
	running = true;
	local_irq_save(flags);
	citcat_mark_segments_accessed();
	citcat_dump_state(window);
	citcat_switch(window, segments, flush_caches);
	local_irq_restore(flags);
	cpus_read_unlock();
}

static int stop(void)
{
	lockdep_assert_held(&trace_lock);
	if (!running)
		return -EINVAL;
	writel(CITCAT_MARK_STOP, window + CITCAT_MARK_OFFSET);
	running = false;
	stop_wanted = false;
	redump_every_ms = 0;
	return 0;
}

static void stop_work_run(struct work_struct *work)
{
	mutex_lock(&trace_lock);
	if (stop_wanted && time_after_eq(jiffies, stop_at))
		stop();
	mutex_unlock(&trace_lock);
}

static void redump_work_run(struct work_struct *work)
{
	mutex_lock(&trace_lock);
	if (running && redump_every_ms && time_after_eq(jiffies, redump_at)) {
		int err = begin_dump();

		/* One that cannot be made now is left out; the rhythm goes on. */
		redump_at = jiffies + msecs_to_jiffies(redump_every_ms);
		schedule_delayed_work(&redump_work, msecs_to_jiffies(redump_every_ms));
		if (!err)
			end_dump();
	}
	mutex_unlock(&trace_lock);
}

/* When it fails, a trace that is running goes on as it was, with its timers. */
static int start(struct citcat_start *request)
{
	int err;

	if (request->flags & ~CITCAT_START_NO_CACHE_FLUSH)
		return -EINVAL;
	if (request->redump_every_ms && request->redump_every_ms < CITCAT_REDUMP_MIN_MS)
		return -EINVAL;

	mutex_lock(&trace_lock);
	err = begin_dump();
	if (!err) {
		flush_caches = !(request->flags & CITCAT_START_NO_CACHE_FLUSH);
		redump_every_ms = request->redump_every_ms;
		request->segment = segments + 1;
		/* Before the dump, so that setting them is no part of the trace. */
		set_timers(request->stop_after_ms);
		end_dump();
	}
	mutex_unlock(&trace_lock);
	return err;
}

static int stop_now(void)
{
	int err;

	/*
	 * The marker first: cancelling takes instructions that nobody wants traced. Under the lock,
	 * or it would take the timers of a trace that somebody starts meanwhile; without waiting,
	 * since a timer that is on its way waits for the lock, and finds then that it is not meant.
	 */
	mutex_lock(&trace_lock);
	err = stop();
	if (!err) {
		cancel_delayed_work(&stop_work);
		cancel_delayed_work(&redump_work);
	}
	mutex_unlock(&trace_lock);
	return err;
}

static void fill_info(struct citcat_info *info)
{
	memset(info, 0, sizeof(*info));
	info->version = CITCAT_INTERFACE_VERSION;
	info->state_bits = IS_ENABLED(CONFIG_X86_64) ? 64 : 32;
	info->window_base = phys;
	info->window_bytes = size;
	info->first_traced = (unsigned long)citcat_first_traced;
	mutex_lock(&trace_lock);
	info->segments = segments;
	info->running = running;
	mutex_unlock(&trace_lock);
}

static long citcat_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	void __user *user = (void __user *)argument;
	struct citcat_start request;
	struct citcat_info info;
	int err;

	if (command != CITCAT_IOC_INFO && !(file->f_mode & FMODE_WRITE))
		return -EBADF;
	switch (command) {
	case CITCAT_IOC_START:
		if (copy_from_user(&request, user, sizeof(request)))
			return -EFAULT;
		err = start(&request);
		if (!err && copy_to_user(user, &request, sizeof(request)))
			return -EFAULT;
		return err;
	case CITCAT_IOC_STOP:
		return stop_now();
	case CITCAT_IOC_INFO:
		fill_info(&info);
		return copy_to_user(user, &info, sizeof(info)) ? -EFAULT : 0;
	default:
		return -ENOTTY;
	}
}

/*
 * A dump puts the kernel's registers, page tables and keys among them on the bus, and a trace all
 * that the machine reads: as much as /dev/mem shows, so it is asked for as that is.
 */
static int take_control(void)
{
	int err;

	if (!capable(CAP_SYS_RAWIO))
		return -EPERM;
	err = security_locked_down(LOCKDOWN_DEV_MEM);
	if (err)
		return err;
	return atomic_cmpxchg(&controlled, 0, 1) ? -EBUSY : 0;
}

static void give_control(void)
{
	atomic_set(&controlled, 0);
}

/* Whoever opens it for writing controls the trace, alone; reading is asking for information. */
static int citcat_open(struct inode *inode, struct file *file)
{
	return file->f_mode & FMODE_WRITE ? take_control() : 0;
}

static int citcat_release(struct inode *inode, struct file *file)
{
	if (file->f_mode & FMODE_WRITE)
		give_control();
	return 0;
}

static const struct file_operations citcat_fops = {
	.owner = THIS_MODULE,
	.open = citcat_open,
	.release = citcat_release,
	.unlocked_ioctl = citcat_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

/*
 * echo start, dump or stop > /sys/class/misc/citcat/trigger: for scripts without the tool. Who
 * writes controls the trace for that moment, as who opens the device: EBUSY while somebody has it.
 */
static ssize_t trigger_store(struct device *dev, struct device_attribute *attr, const char *text,
			     size_t count)
{
	struct citcat_start request = { 0 };
	int err = take_control();

	if (err)
		return err;
	if (sysfs_streq(text, "start") || sysfs_streq(text, "dump"))
		err = start(&request);
	else if (sysfs_streq(text, "stop"))
		err = stop_now();
	else
		err = -EINVAL;
	give_control();
	return err ? err : count;
}
static DEVICE_ATTR_WO(trigger);

static ssize_t segments_show(struct device *dev, struct device_attribute *attr, char *text)
{
	return sysfs_emit(text, "%u\n", segments);
}
static DEVICE_ATTR_RO(segments);

static ssize_t running_show(struct device *dev, struct device_attribute *attr, char *text)
{
	return sysfs_emit(text, "%d\n", running);
}
static DEVICE_ATTR_RO(running);

static struct attribute *citcat_attrs[] = {
	&dev_attr_trigger.attr,
	&dev_attr_segments.attr,
	&dev_attr_running.attr,
	NULL,
};
ATTRIBUTE_GROUPS(citcat);

static struct miscdevice citcat_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "citcat",
	.fops = &citcat_fops,
	.groups = citcat_groups,
	.mode = 0600,
};

/*
 * The window must have been taken from the kernel at boot. Both memmap=SIZE$BASE and
 * reserve=BASE,SIZE leave a range called "Reserved" or "reserved"; whatever else lies there (RAM,
 * devices, firmware tables) is not ours to write to.
 */
static const struct resource *find_reserved(phys_addr_t first, phys_addr_t last)
{
	const struct resource *range;

	for (range = iomem_resource.child; range; range = range->sibling) {
		if (range->start > first || last > range->end)
			continue;
		return !strcasecmp(range->name, "reserved") && !range->child ? range : NULL;
	}
	return NULL;
}

/* Checks the window and claims it. */
static int take_window(void)
{
	phys_addr_t last = (phys_addr_t)phys + size - 1;
	const struct resource *range;

	if (!phys) {
		pr_err("parameter phys is missing: the base of the window reserved by memmap=\n");
		return -EINVAL;
	}
	if (size < CITCAT_WINDOW_MIN_BYTES || !PAGE_ALIGNED(phys) || !PAGE_ALIGNED(size) ||
	    last < phys || last > U32_MAX) {
		pr_err("window %#lx of %#lx bytes: whole pages below 4 GiB are needed, at least %#x bytes\n",
		       phys, size, CITCAT_WINDOW_MIN_BYTES);
		return -EINVAL;
	}
	range = find_reserved(phys, last);
	if (!range) {
		pr_err("window %#lx of %#lx bytes is not reserved; boot with memmap=%luK$%#lx\n",
		       phys, size, size >> 10, phys);
		return -EADDRNOTAVAIL;
	}
	/* What reserve= took is busy already: nobody can claim it, and nobody needs to. */
	if (range->flags & IORESOURCE_BUSY)
		return 0;
	/* Not exclusive for the range itself, which firmware or the command line owns. */
	claim = request_mem_region(phys, size, KBUILD_MODNAME);
	if (!claim) {
		pr_err("window %#lx of %#lx bytes is in use by another driver\n", phys, size);
		return -EBUSY;
	}
	return 0;
}

static void release_window(void)
{
	if (claim)
		release_mem_region(phys, size);
}

static int __init citcat_init(void)
{
	int err = take_window();

	if (err)
		return err;
	window = ioremap(phys, size);
	if (!window) {
		err = -ENOMEM;
		goto release_claim;
	}
	err = misc_register(&citcat_device);
	if (err)
		goto unmap;
	pr_info("window %#lx of %#lx bytes, %d-bit state\n", phys, size,
		IS_ENABLED(CONFIG_X86_64) ? 64 : 32);
	return 0;

unmap:
	iounmap(window);
release_claim:
	release_window();
	return err;
}

static void __exit citcat_exit(void)
{
	misc_deregister(&citcat_device);
	stop_now();
	/* Nobody sets them again; what one of them does may not outlive the window. */
	cancel_delayed_work_sync(&stop_work);
	cancel_delayed_work_sync(&redump_work);
	iounmap(window);
	release_window();
}

module_init(citcat_init);
module_exit(citcat_exit);

MODULE_DESCRIPTION("Processor state for bus traces");
MODULE_AUTHOR("citcat maintainers");
MODULE_LICENSE("GPL");
MODULE_VERSION("1");
